"""A look into a store that another process has open: one read, on a connection that can't write."""

from __future__ import annotations

from pathlib import Path

from ulak.clock import SystemClock
from ulak.ids import Ids
from ulak.spine.capacity import Capacity
from ulak.spine.store import Tx
from ulak.spine.units.dead_letters import Filter, find_ids
from ulak.spine.units.hold import count_held
from ulak.spine.units.sample import Sample, take_sample
from ulak.stores.sqlite.reader import Readers
from ulak.stores.sqlite.tx import SqliteTx

CLOSE_SECONDS = 5.0


async def glance(database: Path, letters: int) -> tuple[Sample, int, int]:
    """The store's counts, how many dead letters there are (at most `letters`), and how many jobs a restore holds."""
    clock = SystemClock()
    readers = Readers(database, clock, lambda connection: SqliteTx(connection, clock.now(), Ids(), Capacity(_none)))

    def look(tx: Tx) -> tuple[Sample, int, int]:
        return take_sample(tx), len(find_ids(tx, Filter(), 0, letters)), count_held(tx)

    try:
        return await readers.read(look)
    finally:
        await readers.close(CLOSE_SECONDS)


def _none(_: str) -> int:
    """Nobody is admitted through a look."""
    return 0
