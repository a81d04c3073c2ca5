"""Ending an attempt: every outcome is fenced by (id, epoch), so a stale worker can't finish a newer attempt."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ulak import codec
from ulak.spine.job import DEFERRED, SUSPECT_LEVEL, JobEvent, Lease
from ulak.spine.outcome import DONE, Cancel, Dead, Done, Release, Retry, Settlement, Snooze
from ulak.spine.query import Queries
from ulak.spine.store import Tx, Verb, WriterQueue
from ulak.spine.trace import with_trace
from ulak.spine.units.finish import Leased, bury, detail_of, finish
from ulak.spine.units.slots import hand_on

sql = Queries("ulak.spine")


def settle(tx: Tx, settlements: Sequence[Settlement]) -> set[tuple[int, int]]:
    """Settle the attempts whose leases are still ours; return their (id, epoch) pairs. Others are left alone."""
    tx.lock_keys(sorted({one.key for one in settlements if one.key is not None}))
    kept = tx.finish(settlements)
    others = [one for one in settlements if (one.id, one.epoch) not in kept] if len(kept) < len(settlements) else ()
    if others:
        kept |= _settle_by_type(tx, others)
    _run_then(tx, settlements, kept)
    return kept


def _run_then(tx: Tx, settlements: Sequence[Settlement], kept: set[tuple[int, int]]) -> None:
    """Each function once, with the items of all jobs that have really ended with it."""
    items: defaultdict[Callable[[Tx, list[Any]], None], dict[tuple[int, int], Any]] = defaultdict(dict)
    for one in settlements:
        outcome, fence = one.outcome, (one.id, one.epoch)
        if outcome is not DONE and isinstance(outcome, Done | Dead) and outcome.then is not None and fence in kept:
            function, item = outcome.then
            items[function].setdefault(fence, item)  # an attempt that is settled twice in one commit has one end
    for function, by_attempt in items.items():
        function(tx, list(by_attempt.values()))


def _settle_by_type(tx: Tx, settlements: Sequence[Settlement]) -> set[tuple[int, int]]:
    rows = {row.id: row for row in tx.rows_as(sql.read_leased, Leased, ids=[one.id for one in settlements])}
    # A row is taken out with its first settlement: a second one of the same attempt finds nothing, like any stale one.
    ours = [
        (one, rows.pop(one.id))
        for one in settlements
        if (row := rows.get(one.id)) is not None and row.epoch == one.epoch
    ]
    by_type: defaultdict[type, list[tuple[Settlement, Leased]]] = defaultdict(list)
    for pair in ours:
        by_type[type(pair[0].outcome)].append(pair)
    _finish_done(tx, by_type[Done])
    finish(tx, JobEvent.CANCELLED, [row for _, row in by_type[Cancel]], _details(by_type[Cancel]))
    _bury_as_told(tx, by_type[Dead])
    _resume(tx, by_type[Retry] + by_type[Snooze])
    _release(tx, [row for _, row in by_type[Release]])
    return {(row.id, row.epoch) for _, row in ours}


def finish_expired(tx: Tx, leases: Iterable[Lease]) -> None:
    """Drop and count claimed jobs that are too old to run."""
    late = [Settlement(one.id, one.epoch, one.kind, one.key, one.attempt, Cancel()) for one in leases]
    tx.lock_keys(sorted({one.key for one in late if one.key is not None}))
    rows = tx.rows_as(sql.read_leased, Leased, ids=[one.id for one in late])
    finish(tx, JobEvent.EXPIRED, rows, {})


def _finish_done(tx: Tx, done: Sequence[tuple[Settlement, Leased]]) -> None:
    for one, row in done:
        if isinstance(one.outcome, Done) and one.outcome.unit is not None:
            with_trace(one.outcome.unit, row.trace)(tx)
    finish(tx, JobEvent.DONE, [row for _, row in done], _details(done))


def _details(ended: Sequence[tuple[Settlement, Leased]]) -> dict[int, str]:
    return {one.id: detail for one, _ in ended if (detail := detail_of(one)) is not None}


def _bury_as_told(tx: Tx, dead: Sequence[tuple[Settlement, Leased]]) -> None:
    for one, row in _judged(tx, dead):
        assert isinstance(one.outcome, Dead)
        bury(tx, row, one.outcome.cause, one.outcome.error_class, one.outcome.code)


def _resume(tx: Tx, paused: Sequence[tuple[Settlement, Leased]]) -> None:
    """Retry or snooze: back to deferred, the reason noted; in a bulkhead the next in line gets the slot meanwhile."""
    if not paused:
        return
    cancelled = [row for _, row in paused if row.cancelled_at is not None]
    if cancelled:
        finish(tx, JobEvent.CANCELLED, cancelled, {})
        paused = [(one, row) for one, row in paused if row.cancelled_at is None]
    changes, freed = [], []
    for one, row in _judged(tx, paused):
        snoozed = isinstance(one.outcome, Snooze)
        word = JobEvent.SNOOZED if snoozed else JobEvent.RETRIED
        reason = one.outcome.reason if isinstance(one.outcome, Retry | Snooze) else ""
        started_at = None if one.uncertain else row.started_at  # announced already
        code = one.outcome.code if isinstance(one.outcome, Retry) else None
        entry = note_entry(
            tx.now, word, row.attempt, started_at=started_at, until=one.resume_at, reason=reason, code=code
        )
        slot = row.slot if _keeps_slot(one, row) else None
        changes.append((DEFERRED, one.resume_at, int(snoozed), slot, entry, row.id))
        if row.key is not None and row.slot is not None and slot is None:
            freed.append((row.key, row.slot))
        tx.emit(word, row.id, row.kind, [row.attempt, one.resume_at, reason[:200]])
        tx.count(word, row.kind)
        tx.park(row.kind, row.key)
        tx.wake_at(one.resume_at)
    tx.update_rows(sql.resume_jobs, changes)
    if freed:
        hand_on(tx, freed)


def _keeps_slot(one: Settlement, row: Leased) -> bool:
    """One slot is order: nobody passes a job that pauses. A breaker's pause is everybody's at that destination."""
    return row.slots == 1 or (isinstance(one.outcome, Snooze) and one.outcome.holds)


def _judged(tx: Tx, ended: Sequence[tuple[Settlement, Leased]]) -> list[tuple[Settlement, Leased]]:
    """Mark the attempts that may have had their effect; return all but those that now wait for a person."""
    mark_uncertain(
        tx, [(row.id, row.kind, row.attempt, row.started_at) for one, row in ended if one.uncertain], deaths=0
    )
    return [(one, row) for one, row in ended if not (one.uncertain and _held(tx, one, row))]


def mark_uncertain(
    tx: Tx, attempts: Sequence[tuple[int, str, int, int | None]], *, deaths: int, owner: int | None = None
) -> None:
    """Attempts (id, kind, attempt, started_at) that may have had their effect: told, counted, and kept in the timeline.

    Those that ended with their process count as deaths of it. Of the others one is enough for the next to be told:
    a job that is no danger to its process need not run alone.
    What becomes of the job is told after it, so that the log's last word is where the job stands.
    """
    entries = []
    for identifier, kind, attempt, started_at in attempts:
        tx.emit(JobEvent.UNCERTAIN, identifier, kind, attempt)
        tx.count(JobEvent.UNCERTAIN, kind)
        entry = note_entry(tx.now, JobEvent.UNCERTAIN, attempt, started_at=started_at, owner=owner)
        entries.append((deaths, entry, identifier))
    tx.update_rows(sql.doubt_jobs, entries)


def _held(tx: Tx, one: Settlement, row: Leased) -> bool:
    """Whether a doubtful job waits for a person now, because its sender wanted that."""
    ((hold,),) = tx.rows(sql.read_hold, id=row.id)
    if hold:
        why = one.outcome.cause if isinstance(one.outcome, Dead) else getattr(one.outcome, "reason", "")
        cause = f"{why}; the attempt may have had its effect, so the job waits for a decision"
        bury(tx, row, cause, "uncertain", getattr(one.outcome, "code", None))
    return bool(hold)


def note_entry(at: int, word: JobEvent, attempt: int, **detail: Any) -> str:
    """A line of a job's timeline, as it is kept in its row."""
    kept = {
        name: value[:500] if isinstance(value, str) else value
        for name, value in detail.items()
        if value not in (None, "")
    }
    return codec.encode_text([at, word, attempt, kept]) + "\n"


def _release(tx: Tx, released: Sequence[Leased]) -> None:
    """Return jobs to ready, uncharged; those that somebody wants cancelled end here."""
    finish(tx, JobEvent.CANCELLED, [row for row in released if row.cancelled_at is not None], {})
    rows = [row for row in released if row.cancelled_at is None]
    if not rows:
        return
    tx.execute(sql.release_jobs, ids=[row.id for row in rows])  # in its old turn
    for row in rows:
        tx.emit(JobEvent.RELEASED, row.id, row.kind)
        tx.wake(row.kind, SUSPECT_LEVEL if row.crashes else row.prio)


def _settle_batches(tx: Tx, batches: list[Sequence[Settlement]]) -> list[set[tuple[int, int]]]:
    """Many workers' settlements as one: an id is leased to one of them only, so they can't collide."""
    if len(batches) == 1:
        return [settle(tx, batches[0])]
    kept = settle(tx, [one for batch in batches for one in batch])
    return [kept.intersection([(one.id, one.epoch) for one in batch]) for batch in batches]


SETTLE: Verb[Sequence[Settlement], set[tuple[int, int]]] = Verb(WriterQueue.SETTLE, _settle_batches)
