"""Slots of a key: at most `slots` jobs of a key are out of the line at once; the rest wait behind, in order.

One slot is order per key, more are a bulkhead per destination. A retry keeps its slot; leaving hands it on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from ulak.spine.job import BEHIND, READY, SUSPECT_LEVEL
from ulak.spine.query import Queries
from ulak.spine.store import Line, Tx, Verb

sql = Queries(__package__)


def occupied_slots(tx: Tx, keys: Iterable[str]) -> dict[str, set[int]]:
    """Lock the keys, then tell which of their slots are taken."""
    wanted = sorted(set(keys))
    tx.lock_keys(wanted)
    taken: dict[str, set[int]] = defaultdict(set)
    for key, slot in tx.all(sql.find_occupied, keys=wanted):
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


def hand_on(tx: Tx, freed: Sequence[tuple[str, int]]) -> None:
    """Give freed (key, slot) pairs to the first jobs behind each key. The keys are locked already."""
    waiting: defaultdict[str, list[int]] = defaultdict(list)
    for key, slot in freed:
        waiting[key].append(slot)
    promoted = []
    for key, identifier, kind, prio, crashes in tx.all(
        sql.find_next, keys=list(waiting), most=max(map(len, waiting.values()), default=0)
    ):
        if waiting[key]:
            promoted.append((waiting[key].pop(), identifier))
            tx.wake(kind, SUSPECT_LEVEL if crashes else prio, identifier)
    if promoted:
        tx.each(sql.promote_jobs, promoted)


def promote_stranded(tx: Tx, after: str, page: int = 100) -> str | None:
    """Look at a page of keys that have jobs behind and give away slots that nobody holds; answers where to go on.

    Jobs that were enqueued in a caller's own transaction wait behind until this finds them.
    """
    keys = [key for (key,) in tx.all(sql.find_stranded, after=after, n=page)]
    if not keys:
        return None
    taken = occupied_slots(tx, keys)
    free = [(key, slot) for key in keys for slot in _free_slots(tx, key, taken[key])]
    hand_on(tx, free)
    return keys[-1] if len(keys) == page else None


def _free_slots(tx: Tx, key: str, used: set[int]) -> list[int]:
    row = tx.one(sql.read_slots, key=key)
    return [number for number in range(1, row[0] + 1) if number not in used] if row else []


def place_due(tx: Tx, joining: Sequence[tuple[int, str, int, str, int]]) -> None:
    """Let keyed jobs that have become due join their line: (id, key, slots, kind, prio)."""
    taken = occupied_slots(tx, [key for _, key, _, _, _ in joining])
    busy = {key for key, _, _, _ in tx.all(sql.find_behind, keys=sorted({key for _, key, _, _, _ in joining}))}
    placed = []
    for identifier, key, slots, kind, prio in joining:
        slot = None if key in busy else take_slot(taken, key, slots)
        placed.append((BEHIND if slot is None else READY, slot, identifier))
        if slot is not None:
            tx.wake(kind, prio, identifier)
    tx.each(sql.place_jobs, placed)


PROMOTE_STRANDED: Verb[str, str | None] = Verb(
    Line.TIMERS, lambda tx, items: [promote_stranded(tx, after) for after in items]
)
