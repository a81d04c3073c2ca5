"""Jobs in a caller's own transaction: capacity is taken before and outside it, and comes back when it was not used."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from ulak.spine.capacity import live_pool
from ulak.spine.job import Row
from ulak.spine.store import Tx
from ulak.spine.units.enqueue import Full, crowded, demands
from ulak.stores.postgres import join
from ulak.stores.postgres.credits import Credits
from ulak.stores.postgres.owner import Owner
from ulak.stores.postgres.reservations import Reservations
from ulak.stores.postgres.tx import PostgresTx

LendUnit = Callable[[list[Row], Counter[str]], Awaitable[Full | None]]


class Lending:
    """`lend` runs the unit of that name on the session that spends the capacity in memory."""

    def __init__(self, capacity: Credits, owner: Owner, lend: LendUnit) -> None:
        self._credits = capacity
        self._owner = owner
        self._lend = lend
        self.reservations = Reservations()

    def forget(self) -> None:
        """The credit that was lent is gone."""
        self.reservations = Reservations()

    async def enqueue(self, connection: Any, rows: Sequence[Row], now: int) -> list[int]:
        """The caller's transaction holds up nobody else."""
        placed = [join.placed(row, now) for row in rows]
        wanted = join.pools_of(placed)
        await self._set_aside(placed, wanted)
        work = asyncio.ensure_future(join.enqueue(connection, placed, now, self._owner))
        work.add_done_callback(partial(self._lent, wanted))
        try:
            ids, _ = await asyncio.shield(work)
        except asyncio.CancelledError:
            work.cancel()
            await asyncio.wait([work])  # a thread may still be at work on the caller's connection
            raise
        return ids

    async def _set_aside(self, rows: list[Row], wanted: Counter[str]) -> None:
        lending = asyncio.ensure_future(self._lend(rows, wanted))
        try:
            lacking = await asyncio.shield(lending)
        except asyncio.CancelledError:
            lending.add_done_callback(partial(self._not_needed, wanted))  # the writer lends it all the same
            raise
        if lacking is not None:
            raise lacking.refusal(self._credits)

    def _not_needed(self, wanted: Counter[str], lending: asyncio.Future[Full | None]) -> None:
        if not lending.cancelled() and lending.exception() is None and lending.result() is None:
            self._credits.apply(wanted)

    def _lent(self, wanted: Counter[str], work: asyncio.Future[join.Answer]) -> None:
        """Take back the capacity that they did not use, whether or not anybody still waits for them."""
        reservation = None if work.cancelled() or work.exception() is not None else work.result()[1]
        self._credits.apply(wanted if reservation is None else wanted - reservation.pools)
        if reservation is not None:
            self.reservations.add(reservation)


def lend(tx: Tx, rows: list[Row], wanted: Counter[str]) -> Full | None:
    assert isinstance(tx, PostgresTx)
    for kind, demand in demands(rows).items():
        if (full := crowded(tx, kind, demand)) is not None:
            return full
    lacking = tx.lend(wanted)
    if lacking is None:
        return None
    kind = next(row.kind for row in rows if lacking in (row.kind, live_pool(row.kind)))
    return Full(kind, wanted[lacking], live=lacking != kind)
