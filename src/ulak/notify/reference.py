"""References: the caller's own names for notifications, kept in the commit that accepts them, to find them by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ulak.ids import first_of
from ulak.spine.job import Row
from ulak.spine.query import Queries
from ulak.spine.store import Tx, Verb, WriterQueue
from ulak.spine.units.enqueue import Full, enqueue_rows

sql = Queries(__package__)

PRUNE_SLICE = 1000


@dataclass(frozen=True, slots=True)
class Referenced:
    row: Row
    reference: str


def keep(tx: Tx, found: Sequence[tuple[str, int]]) -> None:
    if found:
        tx.insert_rows(sql.keep_reference, list(found))


def _accept(tx: Tx, items: list[Referenced]) -> list[int | Full]:
    verdicts = [enqueue_rows(tx, [item.row]) for item in items]
    answers = [verdict if isinstance(verdict, Full) else verdict[0] for verdict in verdicts]
    keep(
        tx,
        [(item.reference, answer) for item, answer in zip(items, answers, strict=True) if not isinstance(answer, Full)],
    )
    return answers


ACCEPT_REFERENCED: Verb[Referenced, int | Full] = Verb(WriterQueue.ENQUEUE, _accept)


def find_jobs(tx: Tx, reference: str, before: int, limit: int) -> list[int]:
    """Newest first."""
    return [job for (job,) in tx.rows(sql.find_references, reference=reference, before=before, n=limit)]


def prune(tx: Tx, keep_millis: int) -> int:
    """Remove a slice of those whose notifications are older than the history."""
    return tx.execute(sql.prune_references, before=first_of(tx.now - keep_millis), n=PRUNE_SLICE)
