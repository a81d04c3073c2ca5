"""By which ids tasks are known: kept in the commit that accepts them, so that a task is accepted once."""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import chain
from typing import NamedTuple

from ulak.ids import first_of
from ulak.spine.job import Record, Row
from ulak.spine.query import Queries
from ulak.spine.store import Tx, Verb, WriterQueue
from ulak.spine.units.enqueue import ENQUEUE, Full
from ulak.spine.units.records import read_record

sql = Queries(__package__)

PRUNE_SLICE = 1000


class Submitted(NamedTuple):
    """A task on its way in: the caller's id, and the job that will run it."""

    task_id: str
    row: Row


def _accept(tx: Tx, batches: list[Sequence[Submitted]]) -> list[list[str] | Full]:
    """Each caller's tasks, all or none; a task that is known already is not accepted again."""
    asked = [one.task_id for one in chain.from_iterable(batches)]
    tx.lock_keys(sorted({f"compute:{task_id}" for task_id in asked}))
    if len(batches) > 1 and len(set(asked)) < len(asked):  # whether the second is new depends on the first
        return [_accept(tx, [batch])[0] for batch in batches]
    known = {task_id for task_id, _ in tx.rows(sql.find_tasks, ids=asked)}
    fresh = [_fresh(batch, known) for batch in batches]
    verdicts = ENQUEUE.run(tx, [list(new.values()) for new in fresh])
    kept = [new for new, verdict in zip(fresh, verdicts, strict=True) if not isinstance(verdict, Full)]
    rows = [(task_id, row.id) for new in kept for task_id, row in new.items()]
    if rows:
        tx.insert_rows(sql.keep_tasks, rows)
    return [
        verdict if isinstance(verdict, Full) else [one.task_id for one in batch]
        for batch, verdict in zip(batches, verdicts, strict=True)
    ]


def _fresh(batch: Sequence[Submitted], known: Container[str]) -> dict[str, Row]:
    """Tasks that are new, by id; of two with the same id it is the first."""
    rows: dict[str, Row] = {}
    for one in batch:
        if one.task_id not in known:
            rows.setdefault(one.task_id, one.row)
    return rows


ACCEPT_TASKS: Verb[Sequence[Submitted], list[str] | Full] = Verb(WriterQueue.ENQUEUE, _accept, len)


def find_task(tx: Tx, task_id: str) -> tuple[str, Record] | None:
    """The task's id and its job, by either id; None when there is none."""
    known = dict(tx.rows(sql.find_tasks, ids=[task_id])).get(task_id)
    job = tx.ids.from_uuid(task_id) if known is None else known
    record = None if job is None else read_record(tx, job)
    if record is None:
        return None
    name = None if known is not None else tx.row(sql.name_task, job=record.id)
    return (task_id if name is None else name[0]), record


def find_each(tx: Tx, task_ids: Sequence[str]) -> dict[str, Record]:
    """The jobs of tasks, by the callers' own ids."""
    known = dict(tx.rows(sql.find_tasks, ids=list(task_ids)))
    return {task_id: record for task_id, job in known.items() if (record := read_record(tx, job))}


def prune(tx: Tx, keep_millis: int) -> int:
    """Remove a slice of those whose jobs are older than what is kept."""
    return tx.execute(sql.prune_tasks, before=first_of(tx.now - keep_millis), n=PRUNE_SLICE)
