"""What Prometheus reads: every name that is counted is described, and the numbers add up."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest

import ulak
from ulak.spine.telemetry import BUCKETS, COUNTERS, HISTOGRAMS, GaugePoint, Histogram, Telemetry


@pytest.fixture
def telemetry():
    return Telemetry()


def read(telemetry):
    registry = CollectorRegistry()
    registry.register(telemetry)
    return generate_latest(registry).decode()


def test_nothing_counted_is_nothing_said(telemetry):
    assert read(telemetry) == ""


def test_a_counter_has_its_kind_and_its_own_labels(telemetry):
    telemetry.count("jobs_accepted", "mail", number=3)
    telemetry.count("jobs_accepted", "mail")
    telemetry.count("jobs_settled", "mail", "done")
    telemetry.count("notify_failures", "notify.email", ("smtp", "transient"))
    text = read(telemetry)
    assert 'ulak_jobs_accepted_total{kind="mail"} 4.0' in text
    assert 'ulak_jobs_settled_total{kind="mail",outcome="done"} 1.0' in text
    assert 'ulak_notify_failures_total{error_class="transient",handler="smtp",kind="notify.email"} 1.0' in text


def test_a_histogram_has_all_its_buckets_and_the_sum(telemetry):
    telemetry.times("mail").run.observe(0.003)
    telemetry.times("mail").run.observe(7.0)
    text = read(telemetry)
    assert 'ulak_job_run_seconds_bucket{kind="mail",le="0.0025"} 0.0' in text
    assert 'ulak_job_run_seconds_bucket{kind="mail",le="0.005"} 1.0' in text
    assert 'ulak_job_run_seconds_bucket{kind="mail",le="+Inf"} 2.0' in text
    assert 'ulak_job_run_seconds_sum{kind="mail"} 7.003' in text


def test_gauges_of_several_sources_are_one_family_and_asked_at_each_scrape(telemetry):
    def point(kind, number):
        return GaugePoint("ulak_depth", "Waiting.", {"kind": kind}, number)

    depth = {"mail": 1.0}
    telemetry.gauges(lambda: [point(kind, number) for kind, number in depth.items()])
    telemetry.gauges(lambda: [point("sms", 5.0)])
    assert 'ulak_depth{kind="mail"} 1.0' in read(telemetry)
    depth["mail"] = 2.0
    text = read(telemetry)
    assert 'ulak_depth{kind="mail"} 2.0' in text
    assert 'ulak_depth{kind="sms"} 5.0' in text
    assert text.count("# TYPE ulak_depth gauge") == 1


def test_a_label_is_written_so_that_it_can_be_read_back(telemetry):
    telemetry.count("jobs_accepted", 'a"b\\c\nd')
    assert 'kind="a\\"b\\\\c\\nd"' in read(telemetry)


@given(st.lists(st.floats(0, 10_000)), st.lists(st.floats(0, 10_000)))
def test_each_observation_is_in_its_bucket_and_in_all_above(one_by_one, together):
    histogram, seconds = Histogram(), one_by_one + together
    for one in one_by_one:
        histogram.observe(one)
    histogram.observe_all(together)
    numbers = dict(histogram.cumulative())
    assert numbers.pop("+Inf") == len(seconds)
    assert numbers == {str(bound): sum(one <= bound for one in seconds) for bound in BUCKETS}
    assert histogram.total == pytest.approx(sum(seconds))


def test_every_name_that_is_counted_somewhere_is_described():
    counted, observed = set(), set()
    for file in Path(ulak.__file__).parent.rglob("*.py"):
        text = file.read_text()
        counted |= set(re.findall(r"telemetry\.count\(\s*\"(\w+)\"", text))
        observed |= set(re.findall(r"telemetry\.observe\(\s*\"(\w+)\"", text))
    assert counted
    assert counted <= set(COUNTERS)
    assert observed <= set(HISTOGRAMS)


def test_what_should_never_happen_is_shown_as_0_before_it_does():
    telemetry = Telemetry()
    telemetry.expect(["mail.send"])
    shown = {
        (sample.name, sample.labels.get("reason")): sample.value
        for one in telemetry.collect()
        for sample in one.samples
    }
    assert shown == {
        ("ulak_jobs_uncertain_total", None): 0,
        ("ulak_duplicate_runs_total", None): 0,
        ("ulak_leases_lost_total", None): 0,
        ("ulak_jobs_refused_total", "full"): 0,
        ("ulak_jobs_refused_total", "share"): 0,
        ("ulak_jobs_refused_total", "disk"): 0,
    }


def test_a_name_of_its_own_that_ends_in_total_is_a_counter(telemetry):
    telemetry.gauges(lambda: [GaugePoint("skipped_total", "Skipped.", {}, 3.0)])
    text = read(telemetry)
    assert "# TYPE skipped_total counter" in text
    assert "\nskipped_total 3.0" in text
