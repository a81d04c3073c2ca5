"""Ending an attempt: every outcome is fenced by (id, epoch), so a stale worker can't finish a newer attempt."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

from ulak import codec
from ulak.spine.departure import Leased, bury, leave, note_departure, tell
from ulak.spine.job import DEFERRED, SUSPECT_LEVEL, Lease, Word
from ulak.spine.outcome import DONE, Cancel, Dead, Done, Release, Retry, Settlement, Snooze
from ulak.spine.query import Queries
from ulak.spine.store import Line, Tx, Verb

sql = Queries(__package__)

_epoch, _fence = attrgetter("epoch"), attrgetter("id", "epoch")


def settle(tx: Tx, settlements: Sequence[Settlement]) -> set[tuple[int, int]]:
    """Settle what is still ours; answers the (id, epoch) pairs that were. The others are left alone."""
    tx.lock_keys(sorted({one.key for one in settlements if one.key is not None}))
    if tx.shared:
        plain = [one for one in settlements if _is_plain(one)]
        kept = _finish_plain(tx, plain) if plain else set()
    else:
        # Done as most are, with nothing else to write or to hand on; any other Done() goes the longer way below.
        simple = [one for one in settlements if one.outcome is DONE and one.key is None]
        kept = _finish_simple(tx, simple) if simple else set()
    others = [one for one in settlements if (one.id, one.epoch) not in kept] if len(kept) < len(settlements) else ()
    return kept | _settle_by_type(tx, others) if others else kept


def _is_plain(one: Settlement) -> bool:
    """Nothing has to be looked at or done before it leaves."""
    return type(one.outcome) is Cancel or (type(one.outcome) is Done and one.outcome.unit is None)


def _finish_simple(tx: Tx, ended: Sequence[Settlement]) -> set[tuple[int, int]]:
    """Where a look at each costs more than a try: fence and keep in one, and look only when not all were taken."""
    kept: list[Settlement] = []
    for epoch in set(map(_epoch, ended)):
        settlements = {one.id: one for one in ended if one.epoch == epoch}
        ids = list(settlements)
        if tx.run(sql.finish_simple, ids=ids, epoch=epoch, now=tx.now) < len(ids):
            ids = [identifier for (identifier,) in tx.all(sql.find_finished, ids=ids)]
        tx.run(sql.delete_jobs, ids=ids)
        kept += map(settlements.__getitem__, ids)
    note_departure(tx, Word.DONE, kept)
    return set(map(_fence, kept))


def _finish_plain(tx: Tx, ended: Sequence[Settlement]) -> set[tuple[int, int]]:
    """Where a round trip costs more than a statement: fence, keep and delete in one."""
    # Of several with one id the statement looks at the last: that must be the newest, a stale one must not hide it.
    ended = sorted(ended, key=_fence)
    found = tx.all(
        sql.finish_jobs,
        id=[one.id for one in ended],
        epoch=[one.epoch for one in ended],
        done=[int(type(one.outcome) is Done) for one in ended],
        now=tx.now,
    )
    details = {one.id: detail for one in ended if (detail := _detail(one)) is not None}
    tx.each(sql.keep_details, [(details[row[2]], row[2]) for row in found if row[2] in details])
    payloads = {row[2]: row[1] for row in found if row[1] is not None}
    for word in (Word.DONE, Word.CANCELLED):
        rows = [Leased._make(row[2:]) for row in found if row[0] == word]
        if rows:
            tell(tx, word, rows, details, payloads)
    return {(row[2], row[3]) for row in found}


def _detail(one: Settlement) -> str | None:
    if isinstance(one.outcome, Cancel):
        return codec.encode_text({"reason": one.outcome.reason})
    result = one.outcome.result if isinstance(one.outcome, Done) else None
    return None if result is None else codec.encode_text(result)


def _settle_by_type(tx: Tx, settlements: Sequence[Settlement]) -> set[tuple[int, int]]:
    rows = {row.id: row for row in tx.records(sql.read_leased, Leased, ids=[one.id for one in settlements])}
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
    leave(tx, Word.CANCELLED, [row for _, row in by_type[Cancel]], _details(by_type[Cancel]))
    _bury_as_told(tx, by_type[Dead])
    _resume(tx, by_type[Retry] + by_type[Snooze])
    _release(tx, [row for _, row in by_type[Release]])
    return {(row.id, row.epoch) for _, row in ours}


def finish_expired(tx: Tx, leases: Iterable[Lease]) -> None:
    """Drop and count claimed jobs that are too old to run."""
    late = [Settlement(one.id, one.epoch, one.kind, one.key, one.attempt, Cancel()) for one in leases]
    tx.lock_keys(sorted({one.key for one in late if one.key is not None}))
    rows = tx.records(sql.read_leased, Leased, ids=[one.id for one in late])
    leave(tx, Word.EXPIRED, rows, {})


def _finish_done(tx: Tx, done: Sequence[tuple[Settlement, Leased]]) -> None:
    for one, _ in done:
        if isinstance(one.outcome, Done) and one.outcome.unit is not None:
            one.outcome.unit(tx)
    leave(tx, Word.DONE, [row for _, row in done], _details(done))


def _details(ended: Sequence[tuple[Settlement, Leased]]) -> dict[int, str]:
    return {one.id: detail for one, _ in ended if (detail := _detail(one)) is not None}


def _bury_as_told(tx: Tx, dead: Sequence[tuple[Settlement, Leased]]) -> None:
    for one, row in _judged(tx, dead):
        assert isinstance(one.outcome, Dead)
        bury(tx, row, one.outcome.cause, one.outcome.error_class)


def _resume(tx: Tx, paused: Sequence[tuple[Settlement, Leased]]) -> None:
    """Retry or snooze: back to deferred, the slot kept, the reason noted."""
    if not paused:
        return
    cancelled = [row for _, row in paused if row.cancelled_at is not None]
    if cancelled:
        leave(tx, Word.CANCELLED, cancelled, {})
        paused = [(one, row) for one, row in paused if row.cancelled_at is None]
    changes = []
    for one, row in _judged(tx, paused):
        snoozed = isinstance(one.outcome, Snooze)
        word = Word.SNOOZED if snoozed else Word.RETRIED
        reason = one.outcome.reason if isinstance(one.outcome, Retry | Snooze) else ""
        started_at = None if one.uncertain else row.started_at  # told already
        entry = note_entry(tx.now, word, row.attempt, started_at=started_at, until=one.resume_at, reason=reason)
        changes.append((DEFERRED, one.resume_at, int(snoozed), entry, row.id))
        tx.emit(word, row.id, row.kind, [row.attempt, one.resume_at, reason[:200]])
        tx.count(word, row.kind)
        tx.wake_at(one.resume_at)
    tx.each(sql.resume_jobs, changes)


def _judged(tx: Tx, ended: Sequence[tuple[Settlement, Leased]]) -> list[tuple[Settlement, Leased]]:
    """Mark the attempts that may have had their effect; answers all but those that now wait for a person."""
    doubt(tx, [(row.id, row.kind, row.attempt, row.started_at) for one, row in ended if one.uncertain], deaths=0)
    return [(one, row) for one, row in ended if not (one.uncertain and _held(tx, one, row))]


def doubt(
    tx: Tx, attempts: Sequence[tuple[int, str, int, int | None]], *, deaths: int, owner: int | None = None
) -> None:
    """Attempts (id, kind, attempt, started_at) that may have had their effect: told, counted, and kept in the timeline.

    Those that ended with their process count as deaths of it. Of the others one is enough for the next to be told:
    a job that is no danger to its process need not run alone.
    What becomes of the job is told after it, so that the log's last word is where the job stands.
    """
    entries = []
    for identifier, kind, attempt, started_at in attempts:
        tx.emit(Word.UNCERTAIN, identifier, kind, attempt)
        tx.count(Word.UNCERTAIN, kind)
        entry = note_entry(tx.now, Word.UNCERTAIN, attempt, started_at=started_at, owner=owner)
        entries.append((deaths, entry, identifier))
    tx.each(sql.doubt_jobs, entries)


def _held(tx: Tx, one: Settlement, row: Leased) -> bool:
    """Whether a doubtful job waits for a person now, because its sender wanted that."""
    ((hold,),) = tx.all(sql.read_hold, id=row.id)
    if hold:
        why = one.outcome.cause if isinstance(one.outcome, Dead) else getattr(one.outcome, "reason", "")
        bury(tx, row, f"{why}; the attempt may have had its effect, so the job waits for a decision", "uncertain")
    return bool(hold)


def note_entry(at: int, word: Word, attempt: int, **detail: Any) -> str:
    """A line of a job's timeline, as it is kept in its row."""
    kept = {
        name: value[:500] if isinstance(value, str) else value
        for name, value in detail.items()
        if value not in (None, "")
    }
    return codec.encode_text([at, word, attempt, kept]) + "\n"


def _release(tx: Tx, released: Sequence[Leased]) -> None:
    """Back to ready, uncharged; what somebody wants cancelled ends here."""
    leave(tx, Word.CANCELLED, [row for row in released if row.cancelled_at is not None], {})
    rows = [row for row in released if row.cancelled_at is None]
    if not rows:
        return
    tx.run(sql.release_jobs, ids=[row.id for row in rows])
    for row in rows:
        tx.emit(Word.RELEASED, row.id, row.kind)
        tx.wake(row.kind, SUSPECT_LEVEL if row.crashes else row.prio, row.id)


def _settle_batches(tx: Tx, batches: list[Sequence[Settlement]]) -> list[set[tuple[int, int]]]:
    """Many workers' settlements as one: an id is leased to one of them only, so they can't collide."""
    if len(batches) == 1:
        return [settle(tx, batches[0])]
    kept = settle(tx, [one for batch in batches for one in batch])
    return [kept.intersection([(one.id, one.epoch) for one in batch]) for batch in batches]


SETTLE: Verb[Sequence[Settlement], set[tuple[int, int]]] = Verb(Line.SETTLE, _settle_batches)
