"""Moves jobs from the table of live jobs to the past or to the dead letters, with the effects on other jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ulak import codec
from ulak.spine.event import events_for
from ulak.spine.job import PARKED, READY, JobEvent, Row, kind_of
from ulak.spine.outcome import Cancel, Done, Settlement
from ulak.spine.query import Queries
from ulak.spine.store import Tx
from ulak.spine.units.enqueue import insert_owed
from ulak.spine.units.slots import hand_on

sql = Queries("ulak.spine")

DETAIL_BYTES = 16_384


class Leased(NamedTuple):
    """A row that is about to leave or to be put off, as read_leased.sql and lock_state.sql return it."""

    id: int
    epoch: int
    kind: str
    key: str | None
    slot: int | None
    slots: int
    prio: int
    attempt: int
    crashes: int
    continuation: str | None
    started_at: int | None
    cancelled_at: int | None
    state: int
    trace: str | None


def detail_of(one: Settlement) -> str | None:
    """Return the detail that an end leaves in the history: a result or a reason."""
    if isinstance(one.outcome, Cancel):
        return codec.encode_text({"reason": one.outcome.reason})
    result = one.outcome.result if isinstance(one.outcome, Done) else None
    return None if result is None else codec.encode_text(result)


def finish(tx: Tx, word: JobEvent, rows: Sequence[Leased], details: dict[int, str]) -> None:
    """Move finished jobs to `past`, enqueue their continuations, and hand their slots on."""
    if not rows:
        return
    ids = [row.id for row in rows]
    tx.execute(sql.keep_past, outcome=word.value, ids=ids, now=tx.now)
    if details:
        tx.update_rows(sql.keep_details, [(details[each], each) for each in ids if each in details])
    _depart(tx, word, rows, {row.id: details.get(row.id) for row in rows if row.continuation})


def bury(tx: Tx, row: Leased, cause: str, error_class: str, code: str | None = None) -> None:
    """To the dead letters, payload and all, so that it can be looked at, mended and sent again."""
    kept = {"cause": cause[:DETAIL_BYTES], "error_class": error_class, "code": code}
    tx.execute(sql.keep_dead, id=row.id, now=tx.now, **kept)
    count_death(tx, row.kind, error_class, 1)
    told = {"cause": cause, "error_class": error_class} | ({} if code is None else {"code": code})
    _depart(tx, JobEvent.DEAD, [row], {row.id: codec.encode_text(told)})


def count_death(tx: Tx, kind: str, error_class: str, number: int) -> None:
    """Count, of the dead, how many could never work and how many are held. A redrive takes its death back."""
    word = {"permanent": JobEvent.FAILED, "uncertain": JobEvent.HELD}.get(error_class)
    if word is not None:
        tx.count(word, kind, number)


def _depart(tx: Tx, word: JobEvent, rows: Sequence[Leased], outcomes: Mapping[int, str | None]) -> None:
    owed = [row.id for row in rows if row.continuation]
    payloads = dict(tx.rows(sql.read_payloads, ids=owed)) if owed else {}
    tx.execute(sql.delete_jobs, ids=[row.id for row in rows])
    announce(tx, word, rows, outcomes, payloads)


def announce(
    tx: Tx, word: JobEvent, rows: Sequence[Leased], outcomes: Mapping[int, str | None], payloads: dict[int, bytes]
) -> None:
    """Apply a departure's effects on others: events, counts, capacity, the freed slot, the continuation."""
    unpark_leaving(tx, rows)
    note_departure(tx, word, rows)
    freed = [(row.key, row.slot) for row in rows if row.key is not None and row.slot is not None]
    if freed:
        hand_on(tx, freed)
    for row in rows:
        if row.continuation:
            _continue(tx, word, row, outcomes.get(row.id), payloads[row.id])


def unpark_leaving(tx: Tx, rows: Sequence[Leased]) -> None:
    """Before a departure is noted, which is one of active jobs: some of these may have been parked."""
    for row in rows:
        if row.state in PARKED:
            tx.unpark(row.kind, row.key)


def note_departure(tx: Tx, word: JobEvent, rows: Sequence[Leased] | Sequence[Settlement]) -> None:
    tx.after_commit.events += events_for(word.value, rows, "attempt")
    for kind, number in Counter(map(kind_of, rows)).items():
        tx.leave(kind, number)
        tx.count(word, kind, number)


def _continue(tx: Tx, word: JobEvent, row: Leased, detail: str | None, payload: bytes) -> None:
    """Enqueue the continuation with the outcome. It is owed already, so the bound does not hold it back."""
    message = {
        "job": row.id,
        "kind": row.kind,
        "outcome": word,
        "attempt": row.attempt,
        "detail": None if detail is None else codec.decode(detail),
        "payload": codec.decode(payload),
    }
    insert_owed(tx, [new_row(tx, row.continuation or "", message, prio=row.prio, trace=row.trace)])


def new_row(
    tx: Tx,
    kind: str,
    payload: Any,
    *,
    prio: int = 2,
    due_at: int | None = None,
    key: str | None = None,
    trace: str | None = None,
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
        trace=trace,
    )
