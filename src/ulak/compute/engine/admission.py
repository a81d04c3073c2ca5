"""The way in when the input is full: block, refuse, or wait for a while; also without blocking an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from time import monotonic

from ulak.compute.engine.backend import Backend
from ulak.compute.engine.work import Work
from ulak.errors import Refused


class Admission:
    def __init__(self, backend: Backend, when_full: str) -> None:
        self._backend = backend
        self._submit = backend.submit
        self.waiting = 0  # submitters that wait; only for show
        self._wait_seconds = 0.0 if when_full == "reject" else None

    def enter(self, work: Work, wait_seconds: float | None = None) -> None:
        """Refused at last when nothing gets free in time; the setting decides when no time is given."""
        try:
            self._submit(work)
        except Refused:
            self._wait(work, self._wait_seconds if wait_seconds is None else wait_seconds)

    def _wait(self, work: Work, seconds: float | None) -> None:
        until = None if seconds is None else monotonic() + seconds
        while True:
            self._wait_for_free(until)
            try:
                return self._submit(work)
            except Refused:
                if until is not None and monotonic() >= until:
                    self._backend.drop()
                    raise

    def _wait_for_free(self, until: float | None) -> None:
        left = None if until is None else until - monotonic()
        if left is None or left > 0:
            free = threading.Event()
            self.waiting += 1
            self._backend.when_free(free.set)
            free.wait(left)
            self.waiting -= 1

    async def enter_async(self, work: Work) -> None:
        while True:
            try:
                return self._submit(work)
            except Refused:
                if self._wait_seconds is not None:
                    self._backend.drop()
                    raise
            await self._free_async()

    async def _free_async(self) -> None:
        loop, free = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(free.set)

        self.waiting += 1
        self._backend.when_free(wake)
        try:
            await free.wait()
        finally:
            self.waiting -= 1
