"""Slots of a key: at most `slots` jobs of a key are out of the line at once; the rest wait behind, in order.

One slot is order per key, and a retry keeps it; more are a bulkhead per destination, and a retry gives its slot on
while it pauses. Leaving hands it on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ulak.spine.job import BEHIND, DEFERRED, READY, SUSPECT, SUSPECT_LEVEL, Row
from ulak.spine.query import Queries
from ulak.spine.store import Tx, Verb, WriterQueue

sql = Queries("ulak.spine")


class Due(NamedTuple):
    """A job whose time has come, as find_due.sql returns it."""

    id: int
    kind: str
    key: str | None
    slots: int
    slot: int | None
    prio: int
    crashes: int
    due_at: int

    @property
    def level(self) -> int:
        return SUSPECT_LEVEL if self.crashes else self.prio

    @property
    def state_when_ready(self) -> int:
        """Return the state of a job that becomes ready: suspect if it crashed before, whatever it waited for."""
        return SUSPECT if self.crashes else READY


def occupied_slots(tx: Tx, keys: Iterable[str]) -> dict[str, set[int]]:
    """Lock the keys, then return their taken slots."""
    wanted = sorted(set(keys))
    tx.lock_keys(wanted)
    taken: dict[str, set[int]] = defaultdict(set)
    for key, slot in tx.rows(sql.find_occupied, keys=wanted):
        taken[key].add(slot)
    return taken


def take_slot(taken: dict[str, set[int]], key: str, slots: int) -> int | None:
    """The lowest free slot, now taken; None when the key is full."""
    used = taken[key]
    if len(used) >= slots:
        return None
    slot = next(number for number in range(1, slots + 1) if number not in used)
    used.add(slot)
    return slot


class Placement:
    """Where new jobs go: ready, with a slot if they have a key, or behind it, or deferred."""

    def __init__(self, tx: Tx, rows: Iterable[Row]) -> None:
        self._now = tx.now
        keys = {row.key for row in rows if row.key is not None and row.due_at <= tx.now}
        self._taken = occupied_slots(tx, keys) if keys else defaultdict(set)
        # Where callers enqueue in their own transactions, a job may stand behind a slot that is still to be handed on.
        lines = tx.rows_if_shared(sql.find_behind, keys=sorted(keys)) if keys else ()
        self._busy = {key for key, _, _, _ in lines}

    def place(self, row: Row) -> Row:
        if row.due_at > self._now:
            return row._replace(state=DEFERRED)
        if row.key is None:
            return row
        slot = None if row.key in self._busy else take_slot(self._taken, row.key, row.slots)
        return row._replace(slot=slot, state=BEHIND if slot is None else READY)

    def undo(self, rows: Iterable[Row]) -> None:
        """They were refused: the slots that they took are free again."""
        for row in rows:
            if row.key is not None and row.slot is not None:
                self._taken[row.key].discard(row.slot)


def hand_on(tx: Tx, freed: Sequence[tuple[str, int]]) -> None:
    """Give freed (key, slot) pairs to the first jobs behind each key. The keys are locked already."""
    waiting: defaultdict[str, list[int]] = defaultdict(list)
    for key, slot in freed:
        waiting[key].append(slot)
    found = tx.rows(sql.find_next, keys=list(waiting), most=max(map(len, waiting.values()), default=0))
    chosen = [(waiting[row[0]].pop(), row) for row in found if waiting[row[0]]]
    promoted = []
    for (slot, (key, identifier, kind, prio, crashes)), turn in zip(chosen, tx.turns(len(chosen)), strict=True):
        promoted.append((slot, identifier, turn))
        tx.unpark(kind, key)
        tx.wake(kind, SUSPECT_LEVEL if crashes else prio, turn)
    if promoted:
        tx.update_rows(sql.promote_jobs, promoted)


def promote_stranded(tx: Tx, after: str, page: int = 100) -> str | None:
    """Look at a page of keys that have jobs behind and give away slots that nobody holds; return where to go on.

    Jobs that were enqueued in a caller's own transaction wait behind until this finds them.
    """
    keys = [key for (key,) in tx.rows(sql.find_stranded, after=after, n=page)]
    if not keys:
        return None
    taken = occupied_slots(tx, keys)
    free = [(key, slot) for key in keys for slot in _free_slots(tx, key, taken[key])]
    hand_on(tx, free)
    return keys[-1] if len(keys) == page else None


def _free_slots(tx: Tx, key: str, used: set[int]) -> list[int]:
    row = tx.row(sql.read_slots, key=key)
    return [number for number in range(1, row[0] + 1) if number not in used] if row else []


def place_due(tx: Tx, joining: Sequence[Due]) -> None:
    """Let keyed jobs that have become due join their line, or take a slot that is free."""
    keys = sorted({one.key for one in joining if one.key is not None})
    taken = occupied_slots(tx, keys)
    busy = {key for key, _, _, _ in tx.rows(sql.find_behind, keys=keys)}
    placed = []
    for one, turn in zip(joining, tx.turns(len(joining)), strict=True):
        slot = None if one.key is None or one.key in busy else take_slot(taken, one.key, one.slots)
        placed.append((BEHIND if slot is None else one.state_when_ready, one.id, slot, turn))
        if slot is not None:
            tx.unpark(one.kind, one.key)
            tx.wake(one.kind, one.level, turn)
    tx.update_rows(sql.place_jobs, placed)


PROMOTE_STRANDED: Verb[str, str | None] = Verb(
    WriterQueue.TIMERS, lambda tx, items: [promote_stranded(tx, after) for after in items]
)
