"""What a handler returns or raises, as an outcome. One classifier for all failures."""

from __future__ import annotations

import asyncio
import inspect

import msgspec

from ulak.errors import Held, Invalid, Permanent, Throttled
from ulak.masking import mask_text
from ulak.spine.form import to_json
from ulak.spine.handler import Handler
from ulak.spine.job import Job
from ulak.spine.outcome import DONE, Cancel, Dead, Done, Outcome, Retry, Snooze

THROTTLE_CAP_SECONDS = 3600.0
LONGEST_PAUSE_SECONDS = 10 * 365 * 86_400.0
SHORTEST_SNOOZE_SECONDS = 0.1  # it is not charged, so a handler that always snoozes would run without end or pause
MOST_CAUSE = 2000
_LOOKED_AT = 10_000  # of a message, which may have megabytes: masking all of it would hold up everybody
_OUTCOMES = (Done, Retry, Snooze, Cancel)


def answered(returned: object) -> Outcome:
    """What a handler returned, as an outcome: None and plain results are Done."""
    outcome = returned if isinstance(returned, _OUTCOMES) else Done(returned)
    if isinstance(outcome, Done):
        if inspect.iscoroutinefunction(outcome.unit):
            raise Permanent(f"the handler answered {outcome!r:.200}; a unit is a plain function, unit(tx)")
        if outcome.result is not None:
            return _written(outcome)
        return DONE if outcome.unit is None else outcome
    seconds = outcome.seconds if isinstance(outcome, Snooze) else getattr(outcome, "after_seconds", 0) or 0
    if not isinstance(seconds, float | int) or not isinstance(outcome.reason, str):
        raise Permanent(f"the handler answered {outcome!r}; give seconds as a number and the reason as text")
    return outcome


def _written(done: Done) -> Done:
    """With the result as JSON already: a value that can't be kept is this job's trouble and nobody else's."""
    try:
        written = msgspec.Raw(to_json(done.result, f"this job ({type(done.result).__name__})", "result"))
    except Invalid as error:
        raise Permanent(f"the handler did its work, but {error}; return JSON or None") from error
    return Done(written, done.unit)


def error_class(error: BaseException) -> str:
    if isinstance(error, Permanent):
        return "uncertain" if isinstance(error, Held) else "permanent"
    return "throttled" if isinstance(error, Throttled) else "transient"


def describe(error: BaseException) -> str:
    try:
        said = str(error)
    except Exception as odd:  # noqa: BLE001 - a handler's own error class may fail even at this
        said = f"(it can't say why: its own message raised {type(odd).__name__})"
    return _storable(mask_text(f"{type(error).__name__}: {_beginning(said)}"))[:MOST_CAUSE]


def _beginning(text: str) -> str:
    """Cut between words: half a secret would not be recognised."""
    return text if len(text) <= _LOOKED_AT else text[:_LOOKED_AT].rpartition(" ")[0] or text[:MOST_CAUSE]


def _storable(text: str) -> str:
    """What every database takes: no lone surrogates (undecodable file names), no NUL."""
    return text.encode(errors="backslashreplace").decode().replace("\x00", "\\x00")


def failed(error: BaseException, handler: Handler, job: Job) -> Outcome:
    """Permanent dies at once, throttled waits as long as it was told (within reason), the rest backs off."""
    if isinstance(error, Permanent):
        return Dead(describe(error), error_class(error))
    if isinstance(error, Throttled) and isinstance(error.retry_after_seconds, float | int):
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
        return now + _pause_millis(outcome.after_seconds or 0.0)
    if isinstance(outcome, Snooze):
        return now + max(_pause_millis(outcome.seconds), round(SHORTEST_SNOOZE_SECONDS * 1000))
    return 0


def _pause_millis(seconds: float) -> int:
    """Within reason: not in the past, not for ever, and a number."""
    return round(min(seconds, LONGEST_PAUSE_SECONDS) * 1000) if seconds > 0 else 0


def stopped(task: asyncio.Task[None]) -> None:
    """Clear the marks that cancelling the handler has left on the runner's task, which goes on with other work."""
    while task.cancelling():
        task.uncancel()
