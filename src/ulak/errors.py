"""Every error Ulak raises, grouped by what the caller should do about it.

The first paragraph of a class's docstring is its default message. Driver errors are translated where the driver is,
and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Error(Exception):
    """Something went wrong in Ulak."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message if message is not None else (type(self).__doc__ or "").partition("\n\n")[0])


class Invalid(Error):
    """The input is not acceptable; correct it and try again."""

    def __init__(self, message: str | None = None, *, fields: list[tuple[str, str]] | None = None) -> None:
        super().__init__(message)
        self.fields = fields or []


class TooLarge(Invalid):
    """It is larger than what is taken; send less."""


class NotFound(Error):
    """There is no such thing."""


class Gone(Error):
    """It was there once, and is not kept any more.

    `extra` goes into the answer beside the message; `location` is where to begin anew.
    """

    def __init__(
        self, message: str | None = None, *, extra: Mapping[str, Any] | None = None, location: str | None = None
    ) -> None:
        super().__init__(message)
        self.extra = extra or {}
        self.location = location


class Conflict(Error):
    """The request does not fit the present state; read it again."""

    # `code` says in one word which conflict it is, for a caller that is a program (ALREADY_TAKEN).
    def __init__(self, message: str | None = None, *, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code


class Duplicate(Conflict):
    """It was submitted already; ask for what became of it."""


class IllegalTransition(Conflict):
    """That step is not allowed from the present state."""


class Refused(Error):
    """Refused for now: a bound is reached; try again later."""

    def __init__(self, message: str | None = None, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class Unavailable(Error):
    """A part that is needed does not answer; try again later.

    `outcome` is "no" when nothing was done and "unknown" when a commit's reply was lost.
    """

    def __init__(self, message: str | None = None, *, outcome: str = "no") -> None:
        super().__init__(message)
        self.outcome = outcome


class Misconfigured(Error):
    """The configuration does not allow this; change it and start again."""


class Failure(Error):
    """A handler's attempt failed; the subclass tells the worker what to do next."""

    tells_of_destination = True  # if not, the breaker of its destination does not hear of it

    # `code` is the failure in one word of its field (SMTP_TIMEOUT); a dead letter keeps it. Of what is `unsent` its
    # destination never knew, so the failure does not tell of it.
    def __init__(self, message: str | None = None, *, code: str | None = None, unsent: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.tells_of_destination = not unsent


class Transient(Failure):
    """It may work later: try again with backoff."""


class PutOff(Transient):
    """The destination works, and asks for a later try of this one alone: its breaker does not count it."""


class CutOff(Transient):
    """The attempt was ended from outside: nobody knows whether it had its effect. The next one is told."""


class Permanent(Failure):
    """It will never work: to the dead letters at once."""


class Held(Permanent):
    """It may have had its effect: kept apart until a person decides."""


class Throttled(Failure):
    """The other side asked us to slow down."""

    def __init__(
        self, message: str | None = None, *, retry_after_seconds: float | None = None, code: str | None = None
    ) -> None:
        super().__init__(message, code=code)
        self.retry_after_seconds = retry_after_seconds
