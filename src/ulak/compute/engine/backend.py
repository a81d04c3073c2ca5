"""The seam behind the engine: where work runs. The worker processes of this machine are one place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from ulak.compute.engine.work import Work


@dataclass(frozen=True, slots=True)
class Shutdown:
    """How far a shutdown had to go: `drained` when nothing was left, else what had to be given up."""

    drained: bool
    cancelled: int = 0  # waited and never ran
    terminated: int = 0  # ran and were ended
    killed: int = 0  # workers that needed more than a word


class Backend(Protocol):
    """Runs work and calls `work.finish(work, outcome)` once for each; ids, attempts and results stay with us."""

    loads_main: bool  # its workers can import the caller's main module; else what that defines is sent whole

    def submit(self, work: Work) -> None:
        """Never blocks. Raises Refused when no more may wait, Unavailable when closing."""

    def cancel(self, work: Work, *, running: bool) -> bool:
        """False when it was too late."""

    def cancel_waiting(self) -> int: ...

    def when_free(self, callback: Callable[[], None]) -> None:
        """Call once when work may be accepted again."""

    def is_running(self, work: Work) -> bool: ...

    def drop(self) -> None:
        """Count a refusal that was final."""

    def metrics(self) -> dict[str, dict[str, Any]]: ...

    def status(self) -> dict[str, str]: ...

    def close(self, drain_seconds: float | None) -> Shutdown:
        """Drain, cancel, terminate, kill; None: drain for as long as it takes."""
