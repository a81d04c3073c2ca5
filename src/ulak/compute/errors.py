"""The errors that only compute has: each is a kind of one in ulak.errors, so that callers can stay general."""

from __future__ import annotations

from concurrent.futures import BrokenExecutor

from ulak.errors import Invalid, NotFound, Permanent, Transient


class Crashed(Permanent, BrokenExecutor):
    """The task ended its worker process every time it ran.

    Users of the stdlib's executors expect a BrokenExecutor then; only this task is broken, the pool goes on.
    """

    @classmethod
    def after(cls, name: str, attempts: int, last: str) -> Crashed:
        return cls(f"{name} ended its worker{': ' if attempts == 1 else f' {attempts} times; last, '}{last}")


class TimedOut(Transient, TimeoutError):
    """The task ran longer than it was allowed to and was stopped."""


class Expired(NotFound):
    """The result was there, but it was dropped because of its age or the bounds of the result cache."""


class UnpicklableResult(Permanent):
    """The task finished, but what it returned cannot be carried to the caller."""


class ScriptRefused(Invalid):
    """The script is not one that may run here."""


class RemoteTraceback(Exception):
    """The traceback of a task as its worker saw it; found as the `__cause__` of the task's exception."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


class ScriptFailed(Permanent):
    """The script ended itself with an exit code other than zero."""
