"""Lanes: where a handler runs that is not async. The seam; threads and processes stand behind it."""

from __future__ import annotations

from typing import Any, Protocol

from ulak.spine.handler import Handler
from ulak.spine.job import Job


class Lane(Protocol):
    """Where handlers run that are not async."""

    async def run(self, handler: Handler, job: Job) -> Any: ...

    def close(self) -> None: ...
