"""Leaving the table of live jobs: to the past or to the dead letters, and what that means to others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ulak import codec
from ulak.spine.enqueue import enqueue_owed
from ulak.spine.event import told
from ulak.spine.job import READY, Row, Word, kind_of
from ulak.spine.outcome import Settlement
from ulak.spine.query import Queries
from ulak.spine.slots import hand_on
from ulak.spine.store import Tx

sql = Queries(__package__)

DETAIL_BYTES = 16_384


class Leased(NamedTuple):
    """A row that is about to leave or to be put off, as read_leased.sql and lock_state.sql return it."""

    id: int
    epoch: int
    kind: str
    key: str | None
    slot: int | None
    prio: int
    attempt: int
    crashes: int
    continuation: str | None
    started_at: int | None
    cancelled_at: int | None


def leave(tx: Tx, word: Word, rows: Sequence[Leased], details: dict[int, str]) -> None:
    """Move finished jobs to `past`, tell who waits for them, and hand their slots on."""
    if not rows:
        return
    ids = [row.id for row in rows]
    tx.run(sql.keep_past, outcome=word.value, ids=ids, now=tx.now)
    if details:
        tx.each(sql.keep_details, [(details[each], each) for each in ids if each in details])
    _depart(tx, word, rows, {row.id: details.get(row.id) for row in rows if row.continuation})


def bury(tx: Tx, row: Leased, cause: str, error_class: str) -> None:
    """To the dead letters, payload and all, so that it can be looked at, mended and sent again."""
    tx.run(sql.keep_dead, id=row.id, cause=cause[:DETAIL_BYTES], error_class=error_class, now=tx.now)
    count_death(tx, row.kind, error_class, 1)
    _depart(tx, Word.DEAD, [row], {row.id: codec.encode_text({"cause": cause, "error_class": error_class})})


def count_death(tx: Tx, kind: str, error_class: str, number: int) -> None:
    """Of the dead, how many failed for good and how many are held. A redrive takes its death back."""
    word = {"permanent": Word.FAILED, "uncertain": Word.HELD}.get(error_class)
    if word is not None:
        tx.count(word, kind, number)


def _depart(tx: Tx, word: Word, rows: Sequence[Leased], outcomes: Mapping[int, str | None]) -> None:
    owed = [row.id for row in rows if row.continuation]
    payloads = dict(tx.all(sql.read_payloads, ids=owed)) if owed else {}
    tx.run(sql.delete_jobs, ids=[row.id for row in rows])
    tell(tx, word, rows, outcomes, payloads)


def tell(
    tx: Tx, word: Word, rows: Sequence[Leased], outcomes: Mapping[int, str | None], payloads: dict[int, bytes]
) -> None:
    """What a departure means to others: events, counts, room, the freed slot, the continuation."""
    note_departure(tx, word, rows)
    freed = [(row.key, row.slot) for row in rows if row.key is not None and row.slot is not None]
    if freed:
        hand_on(tx, freed)
    for row in rows:
        if row.continuation:
            _continue(tx, word, row, outcomes.get(row.id), payloads[row.id])


def note_departure(tx: Tx, word: Word, rows: Sequence[Leased] | Sequence[Settlement]) -> None:
    tx.buffers.events += told(word.value, rows, "attempt")
    for kind, number in Counter(map(kind_of, rows)).items():
        tx.leave(kind, number)
        tx.count(word, kind, number)


def _continue(tx: Tx, word: Word, row: Leased, detail: str | None, payload: bytes) -> None:
    """Enqueue the continuation with the outcome. It is owed already, so the bound does not hold it back."""
    message = {
        "job": row.id,
        "kind": row.kind,
        "outcome": word,
        "attempt": row.attempt,
        "detail": None if detail is None else codec.decode(detail),
        "payload": codec.decode(payload),
    }
    enqueue_owed(tx, [new_row(tx, row.continuation or "", message, prio=row.prio)])


def new_row(
    tx: Tx, kind: str, payload: Any, *, prio: int = 2, due_at: int | None = None, key: str | None = None
) -> Row:
    """A row for a job that is made inside a unit of work."""
    return Row(
        id=tx.ids.take(tx.now),
        kind=kind,
        key=key,
        slots=1,
        slot=None,
        prio=prio,
        due_at=tx.now if due_at is None else due_at,
        state=READY,
        accepted_at=tx.now,
        expires_at=None,
        unique_key=None,
        continuation=None,
        hold=0,
        payload=codec.encode(payload),
    )
