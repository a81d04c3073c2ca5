"""A channel's exception as a failure of its step: code, whether to try again, whether it may have arrived."""

from __future__ import annotations

from ulak.actions.decide import StepFailure
from ulak.channels.channel import RecipientGone, Uncertain
from ulak.errors import Error, Permanent, Throttled, Transient
from ulak.masking import mask_text
from ulak.spine.outcome import Done, Then

MAX_MESSAGE = 500
# Answers after which nobody will be reached at that address any more.
_GONE_CODES = ("_UNREGISTERED", "_HTTP_410", "_GONE", "_HARD_BOUNCE", "_UNKNOWN_RECIPIENT")
_PROVIDERS = {"email": "SMTP", "push": "FCM", "sms": "TWILIO"}


def provider_of(channel_type: str) -> str:
    return _PROVIDERS.get(channel_type, channel_type.upper())


def failure_of(error: BaseException, channel_type: str) -> StepFailure:
    code = getattr(error, "code", None) or f"{provider_of(channel_type)}_{_why(error)}"
    message = mask_text(str(error))[:MAX_MESSAGE] or type(error).__name__
    gone = isinstance(error, RecipientGone) or code.endswith(_GONE_CODES)
    asked = error.retry_after_seconds if isinstance(error, Throttled) else None
    return StepFailure(
        "action_execute",
        code,
        message,
        retryable=not isinstance(error, Permanent),
        uncertain=isinstance(error, Uncertain),
        gone=gone,
        retry_after_seconds=asked,
        unsent=not getattr(error, "tells_of_destination", True),
    )


def _why(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "TIMEOUT"
    if isinstance(error, Throttled):
        return "THROTTLED"
    return "REFUSED" if isinstance(error, Permanent) else "FAILED"


def timed_out(channel_type: str, seconds: float) -> StepFailure:
    """It was handed over and nobody answered in time, so it may have arrived."""
    return StepFailure(
        "action_execute",
        f"{provider_of(channel_type)}_TIMEOUT",
        f"no answer within {seconds:g} s",
        retryable=True,
        uncertain=True,
    )


def done_after(failure: StepFailure | None, then: Then) -> Done:
    """The end of a job that goes on elsewhere: after a failure of its provider, or without having asked it."""
    if failure is None or failure.unsent:
        return Done(then=then, unsent=True)
    return Done(then=then, error_class="transient" if failure.retryable else "permanent")


def as_error(failure: StepFailure, seconds: float) -> Error:
    """For the spine, which counts failures for the breaker and pauses the job."""
    text = f"{failure.code}: {failure.message}"
    if failure.retry_after_seconds is not None:
        return Throttled(text, retry_after_seconds=seconds)
    return Uncertain(text) if failure.uncertain else Transient(text, unsent=failure.unsent)
