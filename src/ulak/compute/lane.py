"""The spine's process lane, filled by the engine: a handler that declares itself CPU-bound runs on a worker process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ulak.compute.engine import Engine
from ulak.spine.handler import Handler
from ulak.spine.job import Job


class ProcessLane:
    """The engine is started by the first job that needs it. Handlers must be importable: they are sent by name."""

    def __init__(self, engine: Callable[[], Engine], close: Callable[[], None]) -> None:
        self._engine = engine
        self._close = close

    async def run(self, handler: Handler, job: Job) -> Any:
        chosen = self._engine().using(timeout_seconds=handler.timeout_seconds, max_retries=0)
        return await chosen.run(handler.call, job)

    def close(self) -> None:
        self._close()
