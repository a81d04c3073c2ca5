"""One attempt: call the handler, and turn whatever comes of it into an outcome. One classifier for all failures."""

from __future__ import annotations

import asyncio

from ulak.errors import Permanent, Throttled
from ulak.masking import mask_text
from ulak.spine.handler import Handler
from ulak.spine.job import Job
from ulak.spine.outcome import Cancel, Dead, Done, Outcome, Retry, Snooze

THROTTLE_CAP_SECONDS = 3600.0
_OUTCOMES = (Done, Retry, Snooze, Cancel)


def answered(returned: object) -> Outcome:
    """What a handler returned, as an outcome: None and plain results are Done."""
    return returned if isinstance(returned, _OUTCOMES) else Done(returned)


def error_class(error: BaseException) -> str:
    if isinstance(error, Permanent):
        return "permanent"
    return "throttled" if isinstance(error, Throttled) else "transient"


def describe(error: BaseException) -> str:
    return mask_text(f"{type(error).__name__}: {error}")[:2000]


def failed(error: BaseException, handler: Handler, job: Job) -> Outcome:
    """Permanent dies at once, throttled waits as long as it was told (within reason), the rest backs off."""
    if isinstance(error, Permanent):
        return Dead(describe(error), "permanent")
    if isinstance(error, Throttled) and error.retry_after_seconds is not None:
        return bounded(
            Retry(min(max(error.retry_after_seconds, 0.0), THROTTLE_CAP_SECONDS), describe(error)),
            handler,
            job,
            "throttled",
        )
    return bounded(Retry(None, describe(error)), handler, job, error_class(error))


def bounded(outcome: Outcome, handler: Handler, job: Job, cause_class: str = "transient") -> Outcome:
    """A retry beyond the last attempt is a death; any other gets its delay."""
    if not isinstance(outcome, Retry):
        return outcome
    if job.attempt >= handler.max_attempts:
        return Dead(
            f"gave up after {job.attempt} attempts: {outcome.reason or 'the handler asked to retry'}", cause_class
        )
    seconds = outcome.after_seconds
    return Retry(handler.backoff.delay_seconds(job.attempt) if seconds is None else seconds, outcome.reason)


def resume_at(outcome: Outcome, now: int) -> int:
    """When a paused job comes back."""
    if isinstance(outcome, Retry):
        return now + round((outcome.after_seconds or 0.0) * 1000)
    return now + round(outcome.seconds * 1000) if isinstance(outcome, Snooze) else 0


def stopped(task: asyncio.Task[None] | None) -> None:
    """Clear the mark that cancelling the handler has left on the runner's task."""
    if task is not None:
        task.uncancel()
