"""However oddly an attempt fails, the worker gets an outcome: an error on the way there would leave the job leased."""

from __future__ import annotations

import re

import pytest

from ulak.backoff import Backoff
from ulak.errors import Permanent, Throttled
from ulak.spine.handler import Handler
from ulak.spine.job import Job
from ulak.spine.loops import classify
from ulak.spine.outcome import Done, Retry, Snooze


async def nothing(job):
    return None


class Mute(Exception):
    def __str__(self):
        raise LookupError("no words")


JOB = Job(1, "mail.send", None, 3, 1)


def outcome_of(error, **backoff):
    return classify.failed(error, Handler("mail.send", nothing, backoff=Backoff(jitter=0, **backoff)), JOB)


def test_an_error_that_can_not_be_printed_is_a_failure_like_others():
    assert outcome_of(Mute()) == Retry(4.0, "Mute: (it can't say why: its own message raised LookupError)")


@pytest.mark.parametrize("asked", ["7", object(), None, [1]], ids=lambda asked: type(asked).__name__)
def test_a_pause_that_is_no_number_is_the_usual_pause(asked):
    assert outcome_of(Throttled("slow", retry_after_seconds=asked)) == Retry(4.0, "Throttled: slow")


def test_a_pause_that_is_not_a_number_ends_at_once():
    outcome = outcome_of(Throttled("slow", retry_after_seconds=float("nan")))
    assert classify.resume_at(outcome, 1000) == 1000


@pytest.mark.parametrize("factor", [1e9, 10**9])
def test_a_backoff_that_grows_beyond_all_numbers_stays_at_its_cap(factor):
    assert Backoff(factor=factor, cap_seconds=60, jitter=0).delay_seconds(1000) == 60


def test_a_message_of_megabytes_is_cut_before_it_is_masked(monkeypatch):
    seen = []
    monkeypatch.setattr(classify, "mask_text", lambda text: seen.append(len(text)) or text)
    cause = classify.describe(ValueError("a word " * 1_000_000))
    assert cause.startswith("ValueError: a word ")
    assert len(cause) == classify.MAX_CAUSE
    assert max(seen) < 20_000


def test_a_long_message_is_cut_between_words_so_that_no_half_secret_is_left():
    cause = classify.describe(ValueError("x " + "a1" * 4994 + " ayse@example.com and more " + "y" * 9999))
    assert "ayse" not in cause


@pytest.mark.parametrize("seconds", [None, "soon"])
def test_a_snooze_without_a_number_is_said_to_be_wrong(seconds):
    with pytest.raises(Permanent, match="give seconds as a number"):
        classify.answered(Snooze(seconds))


async def later(tx):
    """No unit: it would have to be awaited."""


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (object(), "result of this job (object) can't be written as JSON"),
        (["x" * 600_000] * 2, "result of this job (list) is larger than 1024 KiB"),
        ({"rate": float("nan")}, "result of this job (dict) can't be written as JSON"),
        (Done(1, later), "a unit is a plain function"),
        (Done(None, later), "a unit is a plain function"),
    ],
    ids=["no JSON", "too large", "NaN", "async unit", "async unit alone"],
)
def test_a_result_that_would_not_be_kept_as_it_is_says_why(answer, why):
    with pytest.raises(Permanent, match=re.escape(why)):
        classify.answered(answer)
