"""A handler's answer or exception as an outcome. One classifier for all failures."""

from __future__ import annotations

import asyncio
import inspect
import re
from dataclasses import replace
from typing import Any, get_args

import msgspec

from ulak.errors import Failure, Held, Invalid, Permanent, Throttled
from ulak.masking import mask_text
from ulak.spine.handler import Handler
from ulak.spine.job import Job
from ulak.spine.outcome import DONE, Cancel, Dead, Done, ErrorClass, Outcome, Retry, Snooze
from ulak.spine.validate import to_json

THROTTLE_CAP_SECONDS = 3600.0
MAX_PAUSE_SECONDS = 10 * 365 * 86_400.0
MIN_SNOOZE_SECONDS = 0.1  # it is not charged, so a handler that always snoozes would run without end or pause
MAX_CAUSE = 2000
_LOOKED_AT = 10_000  # of a message, which may have megabytes: masking all of it would hold up everybody
_OUTCOMES = (Done, Retry, Snooze, Cancel, Dead)
_CODE = re.compile(r"[A-Za-z0-9_.:-]{1,100}")


def answered(returned: object) -> Outcome:
    """Return a handler's answer as an outcome: None and plain results are Done."""
    outcome = returned if isinstance(returned, _OUTCOMES) else Done(returned)
    if isinstance(outcome, Done | Dead) and not _is_then(outcome.then):
        raise Permanent(f"the handler answered {outcome!r:.200}; `then` is a plain function(tx, items) and an item")
    if isinstance(outcome, Done):
        if inspect.iscoroutinefunction(outcome.unit):
            raise Permanent(f"the handler answered {outcome!r:.200}; a unit is a plain function, unit(tx)")
        if outcome.result is not None:
            return _written(outcome)
        return DONE if outcome == DONE else outcome
    if isinstance(outcome, Dead):
        return _checked(outcome)
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
    return replace(done, result=written)


def _is_then(then: Any) -> bool:
    match then:
        case None:
            return True
        case (function, _):
            return callable(function) and not inspect.iscoroutinefunction(function)
    return False


def _checked(dead: Dead) -> Dead:
    """A death as the store can keep it."""
    if not _is_told(dead.cause, dead.error_class):
        raise Permanent(
            f"the handler answered {dead!r:.200}; give the cause as text and one of {', '.join(get_args(ErrorClass))}"
        )
    if dead.code is not None and _known_code(dead.code) is None:
        raise Permanent(f"the handler answered {dead!r:.200}; a code is one word of up to 100 letters: SMTP_TIMEOUT")
    return replace(dead, cause=_shown(dead.cause))


def _is_told(cause: object, error_class: object) -> bool:
    return isinstance(cause, str) and error_class in get_args(ErrorClass)


def _known_code(code: object) -> str | None:
    return code if isinstance(code, str) and _CODE.fullmatch(code) else None


def _code_of(error: BaseException) -> str | None:
    return _known_code(getattr(error, "code", None)) if isinstance(error, Failure) else None


def error_class(error: BaseException) -> str:
    if isinstance(error, Permanent):
        return "uncertain" if isinstance(error, Held) else "permanent"
    return "throttled" if isinstance(error, Throttled) else "transient"


def describe(error: BaseException) -> str:
    try:
        said = str(error)
    except Exception as odd:  # noqa: BLE001 - a handler's own error class may fail even at this
        said = f"(it can't say why: its own message raised {type(odd).__name__})"
    return _shown(f"{type(error).__name__}: {said}")


def _shown(text: str) -> str:
    return _storable(mask_text(_beginning(text)))[:MAX_CAUSE]


def _beginning(text: str) -> str:
    """Cut between words: half a secret would not be recognised."""
    return text if len(text) <= _LOOKED_AT else text[:_LOOKED_AT].rpartition(" ")[0] or text[:MAX_CAUSE]


def _storable(text: str) -> str:
    """Return a text that every database takes: no lone surrogates (undecodable file names), no NUL."""
    return text.encode(errors="backslashreplace").decode().replace("\x00", "\\x00")


def failed(error: BaseException, handler: Handler, job: Job) -> Outcome:
    """Permanent dies at once, throttled waits as long as it was asked to (up to a limit), the rest backs off."""
    code = _code_of(error)
    if isinstance(error, Permanent):
        return Dead(describe(error), error_class(error), code)
    if isinstance(error, Throttled) and isinstance(error.retry_after_seconds, float | int):
        seconds = min(max(error.retry_after_seconds, 0.0), THROTTLE_CAP_SECONDS)
        return bounded(Retry(seconds, describe(error), code), handler, job, "throttled")
    return bounded(Retry(None, describe(error), code), handler, job, error_class(error))


def bounded(outcome: Outcome, handler: Handler, job: Job, cause_class: str = "transient") -> Outcome:
    """A retry beyond the last attempt is a death; any other gets its delay."""
    if not isinstance(outcome, Retry):
        return outcome
    if job.attempt >= handler.max_attempts:
        why = outcome.reason or "the handler asked to retry"
        return Dead(f"gave up after {job.attempt} attempts: {why}", cause_class, outcome.code)
    seconds = outcome.after_seconds
    failures = max(job.attempt - job.crashes, 1)  # a death of our process says nothing about the job
    delay = handler.backoff.delay_seconds(failures) if seconds is None else seconds
    return Retry(delay, outcome.reason, outcome.code)


def resume_at(outcome: Outcome, now: int) -> int:
    """When a paused job comes back."""
    if isinstance(outcome, Retry):
        return now + _pause_millis(outcome.after_seconds or 0.0)
    if isinstance(outcome, Snooze):
        return now + max(_pause_millis(outcome.seconds), round(MIN_SNOOZE_SECONDS * 1000))
    return 0


def _pause_millis(seconds: float) -> int:
    """Within reason: not in the past, not for ever, and a number."""
    return round(min(seconds, MAX_PAUSE_SECONDS) * 1000) if seconds > 0 else 0


def stopped(task: asyncio.Task[None]) -> None:
    """Clear the marks that cancelling the handler has left on the runner's task, which goes on with other work."""
    while task.cancelling():
        task.uncancel()
