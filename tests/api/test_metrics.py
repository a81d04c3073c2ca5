"""Metrics: what is counted, that it adds up, and that every one is documented."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.api.serving import serving, with_deaths
from ulak.clock import SystemClock
from ulak.http import gauges, meter
from ulak.spine import telemetry
from ulak.spine.breaker import Breaker, save_breakers

PAGE = (Path(__file__).parents[2] / "docs/reference/metrics.md").read_text(encoding="utf-8")
NAMES = [
    *(f"ulak_{name}_total" for name in telemetry.COUNTERS),
    *(f"ulak_{name}" for name in telemetry.HISTOGRAMS),
    *gauges.GAUGES,
    *meter.METRICS,
]


def values(text, name):
    """Label text to value, of one metric."""
    return {labels: float(value) for labels, value in re.findall(rf"^{name}(?:{{(.*)}})? (\S+)$", text, re.MULTILINE)}


@pytest.mark.parametrize("name", NAMES)
def test_every_metric_is_documented(name):
    assert f"`{name}`" in PAGE


async def test_every_metric_that_is_scraped_is_documented():
    async with serving(with_deaths) as served:
        await served.settled(await served.enqueue())
        found = re.findall(r"^# TYPE (\S+) (\S+)$", (await served.get("/metrics")).text, re.MULTILINE)
    assert found
    assert [name for name, _ in found if f"`{name}`" not in PAGE] == []  # also those that only a room knows


async def test_depth_age_and_utilisation_are_shown_by_kind():
    def prepare(ulak):
        @ulak.handles("mail", capacity=4)
        async def mail(job): ...

    async with serving(prepare, work=False) as served:
        await served.enqueue()
        await served.enqueue(delaySeconds=60)
        text = (await served.get("/metrics")).text
    assert values(text, "ulak_jobs") == {'kind="mail",state="ready"': 1, 'kind="mail",state="deferred"': 1}
    bounds = {bound: f'bound="{bound}",kind="mail"' for bound in ("active", "live")}
    shown = {
        "ulak_capacity": (4, 1_000_000),
        "ulak_remaining_capacity": (3, 999_998),
        "ulak_utilisation": (0.25, 2e-6),
    }
    for name, (active, live) in shown.items():
        assert values(text, name).items() >= {bounds["active"]: active, bounds["live"]: live}.items()
    assert 'kind="mail"' in values(text, "ulak_oldest_job_age_seconds")


async def test_bounds_of_a_kind_that_has_had_no_job_are_shown_too():
    async with serving(work=False) as served:
        text = (await served.get("/metrics")).text
    bounds = [f'bound="{bound}",kind="notify.sms"' for bound in ("active", "live")]
    assert [values(text, "ulak_capacity")[one] for one in bounds] == [1000, 1_000_000]
    assert [values(text, "ulak_remaining_capacity")[one] for one in bounds] == [1000, 1_000_000]
    assert [values(text, "ulak_utilisation")[one] for one in bounds] == [0, 0]


async def test_ages_do_not_depend_on_what_time_this_machine_thinks_it_is():
    class HeldJobs(SystemClock):
        def now(self):
            return super().now() + 300_000

    async with serving(work=False) as served:
        served.ulak.clock = HeldJobs()  # the store goes on by its own
        await served.enqueue()
        text = (await served.get("/metrics")).text
    assert 0 <= values(text, "ulak_oldest_job_age_seconds")['kind="mail"'] < 60
    assert 0 <= values(text, "ulak_sample_age_seconds")[""] < 60


async def test_what_was_accepted_is_accounted_for_through_death_and_redrive():
    async with serving(with_deaths) as served:
        await served.settled(await served.enqueue("mail"))
        doomed = await served.enqueue("doomed", {"to": "x"})
        await served.settled(doomed, "dead")
        await served.post("/api/dead/redrive", {"all": True})
        await served.settled(doomed, "dead")
        waiting = await served.enqueue("unknown")
        await served.post(f"/api/jobs/{waiting}/cancel")
        await served.enqueue("unknown")
        text = (await served.get("/metrics")).text
        assert (await served.get("/api/db")).body["differences"] == {}
    assert values(text, "ulak_conservation_difference") == {
        'kind="doomed"': 0, 'kind="mail"': 0, 'kind="unknown"': 0,
    }  # fmt: skip


async def test_a_scrape_does_not_ask_the_store_each_time():
    async with serving(work=False) as served:
        await served.get("/metrics")
        await served.enqueue()
        assert values((await served.get("/metrics")).text, "ulak_jobs") == {}


async def test_requests_are_counted_by_route_and_not_by_path():
    async with serving() as served:
        for path in ("/api/jobs/1", "/api/jobs/2", "/nowhere/1", "/nowhere/2"):
            await served.get(path)
        await served.enqueue()
        text = (await served.get("/metrics")).text
    counted = values(text, "ulak_http_requests_total")
    assert counted['method="GET",route="/api/jobs/{id}",status="404"'] == 2
    assert counted['method="GET",route="other",status="404"'] == 2
    assert counted['method="POST",route="/api/jobs",status="202"'] == 1
    assert values(text, "ulak_http_requests_in_progress") == {"": 1}


async def test_breakers_that_are_masked_alike_are_one_series():
    async with serving(work=False) as served:
        until_at = served.ulak.clock.now() + 60_000
        broken = [Breaker(f"https://{name}:secret@down.example", "open", 10, 1, until_at) for name in "ab"]
        await served.ulak.store.write(save_breakers, broken)
        text = (await served.get("/metrics")).text
    assert re.findall(r"^ulak_breaker_open\{.*\} (\S+)$", text, re.MULTILINE) == ["2.0"]


async def test_an_open_breaker_is_shown_and_reset():
    async with serving(work=False) as served:
        broken = Breaker("https://down.example", "open", 10, 1, served.ulak.clock.now() + 60_000)
        served.ulak.loops.breakers.load([broken])
        await served.ulak.store.write(save_breakers, [broken])
        shown = values((await served.get("/metrics")).text, "ulak_breaker_open")
        assert shown == {'destination="https://down.example",state="open"': 1}
        (listed,) = (await served.get("/api/breakers")).body["breakers"]
        assert (listed["state"], listed["failures"]) == ("open", 10)
        assert (await served.post("/api/breakers/reset", {})).status == 400
        assert (await served.post("/api/breakers/reset", {"id": "0" * 16})).status == 404
        assert (await served.post("/api/breakers/reset", {"id": listed["id"]})).body == {"reset": 1}
        (line,) = (await served.get("/api/audit?verb=breakers.reset")).body["items"]
        assert line["object"] == listed["destination"]
        assert (await served.get("/api/breakers")).body == {"breakers": []}
        assert served.ulak.loops.breakers.admit("https://down.example", served.ulak.clock.now()) is None
        events = (await served.get("/api/events")).body["events"]
        assert [event["name"] for event in events] == ["breaker.open", "breaker.closed"]
