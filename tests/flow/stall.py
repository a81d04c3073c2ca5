"""A store that neither works nor fails: its commits hang until the test lets them go on."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType
from typing import Any, Self

from ulak import Ulak
from ulak.stores.writer.writer import Writer

PATIENCE_SECONDS = 60


def writers_of(ulak: Ulak) -> list[Writer]:
    store: Any = ulak.store
    return [store._writer] if hasattr(store, "_writer") else list(dict.fromkeys(store._writers.values()))


class Stall:
    """Inside it, every commit of an Ulak's store hangs; afterwards they go on as if nothing had been."""

    def __init__(self, ulak: Ulak) -> None:
        self.writers = writers_of(ulak)
        self.reached = threading.Event()
        self._over = threading.Event()

    def __enter__(self) -> Self:
        for writer in self.writers:
            session: Any = writer._session
            session.commit = self._held(session.commit)
        return self

    def _held(self, commit: Any) -> Any:
        def hold(tx: Any) -> None:
            self.reached.set()
            self._over.wait(PATIENCE_SECONDS)
            commit(tx)

        return hold

    async def is_reached(self) -> None:
        while not self.reached.is_set():
            await asyncio.sleep(0)

    def end(self) -> None:
        self._over.set()

    def end_and_join(self) -> None:
        """Until the threads have ended that a stop has left behind."""
        self.end()
        for writer in self.writers:
            writer._thread.join(PATIENCE_SECONDS)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
