"""The spine's process lane, filled by the engine: a handler that declares itself CPU-bound runs on a worker process."""

from __future__ import annotations

from collections.abc import Callable
from pickle import dumps
from typing import Any

from ulak.compute.engine.engine import Engine
from ulak.compute.errors import Crashed, TimedOut
from ulak.compute.worker.protocol import PROTOCOL
from ulak.errors import CutOff, Permanent
from ulak.spine.handler import Handler
from ulak.spine.job import Job


class ProcessLane:
    """The engine is started by the first job that needs it. Handlers must be importable: they are sent by name."""

    def __init__(self, engine: Callable[[], Engine], close: Callable[[], None]) -> None:
        self._engine = engine
        self._close = close
        self._sendable: set[str] = set()

    async def run(self, handler: Handler, job: Job) -> Any:
        if handler.kind not in self._sendable:
            self._check(handler)
        chosen = self._engine().using(timeout_seconds=handler.timeout_seconds, max_retries=0)
        try:
            return await chosen.run(handler.call, job)
        except (Crashed, TimedOut) as error:  # one attempt of several; the spine counts them
            raise CutOff(str(error)) from error

    def _check(self, handler: Handler) -> None:
        try:
            dumps(handler.call, PROTOCOL)
        except Exception as error:
            text = (
                f"the handler of {handler.kind} can't be sent to a process ({error}); define it at a module's top level"
            )
            raise Permanent(text) from error
        self._sendable.add(handler.kind)

    def close(self) -> None:
        self._close()
