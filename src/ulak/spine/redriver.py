"""The redriver: sends dead letters again at a rate, in the background, until all are sent or somebody stops it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Generic, TypeVar

from ulak.errors import Conflict, Error
from ulak.log import get_logger
from ulak.spine.store import Store, Tx
from ulak.spine.units.redrives import Progress, begin_redrive, end_redrive, read_redrive, send_next, stop_redrive

log = get_logger("ulak.redriver")

Wanted = TypeVar("Wanted")


class Redriver(Generic[Wanted]):
    """Any process of a store shows and stops the redrive that one of them runs. A room has its own letters sent."""

    def __init__(
        self,
        store: Store,
        find: Callable[[Tx, Wanted, int, int], list[int]],
        send: Callable[[Tx, str, list[int]], list[int]],
    ) -> None:
        self._store = store
        self._find = find
        self._send = send
        self._task: asyncio.Task[None] | None = None

    async def progress(self) -> Progress | None:
        """Of the one that runs, or of the last one."""
        return await self._store.read(read_redrive, self._store.owner)

    async def start(self, wanted: Wanted, rate_per_second: float, matched: int, *, who: str = "python") -> None:
        begun = await self._store.write(begin_redrive, self._store.owner, matched, rate_per_second)
        if begun is None:
            raise Conflict(
                "a redrive at a rate is under way already; stop it with DELETE /api/dead/redrive, wait for its end, "
                "or ask without a rate"
            )
        self.cancel()  # one that was stopped may still be in its pause
        self._task = asyncio.create_task(self._run(begun, wanted, who), name="ulak-redrive")

    async def stop(self, *, who: str = "python") -> Progress:
        stopped = await self._store.write(stop_redrive, self._store.owner, who)
        if stopped is None:
            raise Conflict("no redrive at a rate is under way")
        return stopped

    def cancel(self) -> None:
        """Cancel the redrive at the end of this process; other processes see in the store that it has ended."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self, begun: Progress, wanted: Wanted, who: str) -> None:
        try:
            await self._send_all(begun, wanted, who)
            await self._store.write(end_redrive, self._store.owner, begun.number)
        except Error as error:
            log.warning("redrive_stopped", error=str(error))
            with contextlib.suppress(Error):
                await self._store.write(end_redrive, self._store.owner, begun.number, str(error))

    async def _send_all(self, begun: Progress, wanted: Wanted, who: str) -> None:
        after = 0
        while ids := await self._store.read(self._find, wanted, after, 1):
            if not await self._store.write(send_next, self._store.owner, begun.number, who, ids, self._send):
                return
            after = ids[-1]
            await self._store.clock.wait(asyncio.Event(), 1 / begun.rate_per_second)
