"""Bulk: a load of many rows, written slice by slice between the jobs' commits; no job waits longer than one slice."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from itertools import islice
from typing import Any, TypeVar

from ulak.clock import SystemClock
from ulak.spine.store import Store, Tx, Verb, WriterQueue
from ulak.spine.units.analyze import analyze

T = TypeVar("T")
R = TypeVar("R")

FIRST_ROWS = 50
MAX_ROWS = 5_000

RUN_BULK: Verb[Callable[[Tx], Any], Any] = Verb(WriterQueue.BULK, lambda tx, units: [unit(tx) for unit in units])


class SliceSize:
    """Decides how many rows the next slice has, by how long the last one took."""

    def __init__(self, seconds: float, least: int = 1) -> None:
        self._least = least
        self._seconds = seconds
        self.rows = max(FIRST_ROWS, least)

    def adapt(self, rows: int, seconds: float) -> None:
        if rows == self.rows:  # the last slice is shorter, so its time says nothing
            fitting = round(rows * self._seconds / max(seconds, 1e-6))
            self.rows = min(max(fitting, rows // 2, self._least), rows * 2, MAX_ROWS)


async def slices_written(
    store: Store,
    unit: Callable[[Tx, Sequence[T]], R],
    rows: Iterable[T],
    *,
    least: int = 1,
    seconds: float | None = None,
) -> AsyncIterator[tuple[Sequence[T], R]]:
    """Run `unit(tx, slice)` over all rows, no two slices in one commit; yield each slice with the unit's result.

    `least` is for rows that are known to be cheap: on a busy machine every slice is late, and small ones only make more
    commits. `seconds` is how long a slice may take, without its commit; else the store says so.
    """
    source, size = iter(rows), SliceSize(store.slice_seconds if seconds is None else seconds, least)
    while part := tuple(islice(source, size.rows)):
        answer, took = await store.submit(RUN_BULK, _timed(unit, part))
        size.adapt(len(part), took)
        yield part, answer


async def write_in_slices(
    store: Store, unit: Callable[[Tx, Sequence[T]], R], rows: Iterable[T], *, least: int = 1
) -> list[R]:
    """Run `unit(tx, slice)` over all rows, no two slices in one commit; return what each of them returned.

    Slices are kept in order. If one fails, its error is raised: the slices before it are in the store, those after it
    are not. A unit that may be repeated from the start (upserts by key) makes the whole load so.
    """
    return [answer async for _, answer in slices_written(store, unit, rows, least=least)]


def _timed(unit: Callable[[Tx, Sequence[T]], R], part: Sequence[T]) -> Callable[[Tx], tuple[R, float]]:
    """Return how long the store needs for a slice, without its wait in the queue."""

    def run(tx: Tx) -> tuple[R, float]:
        began = SystemClock.monotonic()
        answer = unit(tx, part)
        return answer, SystemClock.monotonic() - began

    return run


async def analyze_tables(store: Store, *tables: str) -> None:
    """After a load: plans made for empty tables are wrong for full ones (a page of 1,000: 546 ms without, 0.5 with)."""
    await store.submit(RUN_BULK, lambda tx: analyze(tx, tables))
