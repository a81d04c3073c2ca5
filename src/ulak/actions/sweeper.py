"""Steps whose job ended without deciding (poison, a hold after a crash, a cancel by hand) are ended here."""

from __future__ import annotations

from typing import Any

from ulak.actions.decide import StepFailure
from ulak.actions.records import read_runs, read_steps
from ulak.actions.steps.ends import StepEnd, StepEnds
from ulak.spine.query import Queries
from ulak.spine.store import Tx
from ulak.spine.units.live import find_live
from ulak.spine.units.records import read_record

sql = Queries("ulak.actions")

PAGE = 1000
PATIENCE_MILLIS = 20_000  # younger ones are most probably under way, and there are many
POISON, CRASHED = "WORKER_DIED", "WORKER_DIED_UNCERTAIN"


def find_orphans(tx: Tx) -> list[tuple[int, int]]:
    """Unfinished steps that were due a while ago and for which no job is live: (run, step_order)."""
    orphans: list[tuple[int, int]] = []
    after = 0
    while rows := tx.rows(sql.find_stale_steps, before=tx.now - PATIENCE_MILLIS, after=after, n=PAGE):
        live = find_live(tx, sorted({job for _, _, *both in rows for job in both if job is not None}))
        orphans += [(run, order) for run, order, *both in rows if not live.intersection(both)]
        after = rows[-1][0]
    return orphans


def end_orphans(tx: Tx, orphans: list[tuple[int, int]], ends: StepEnds) -> int:
    """Looked at again inside the transaction: a step that went on meanwhile is left alone."""
    steps = read_steps(tx, (run for run, _ in orphans))
    runs = read_runs(tx, (run for run, _ in orphans))
    rows = [row for run, order in orphans if run in runs and (row := steps.get(run, {}).get(order)) is not None]
    live = find_live(tx, sorted({job for row in rows for job in (row.job, row.timer) if job is not None}))
    lost = [row for row in rows if row.ended_at is None and not live.intersection((row.job, row.timer))]
    ends.end(tx, [_end_of(row.run, row.step_order, row.job, read_record(tx, row.job)) for row in lost])
    return len(lost)


def _end_of(run: int, order: int, job: int, record: Any) -> StepEnd:
    if record is not None and record.status == "dead":
        held = "decision" in str(record.detail)
        retries = max(record.attempt - 1 - record.crashes, 0)
        failure = StepFailure(
            "action_execute",
            CRASHED if held else POISON,
            "its process died while it was being sent",
            uncertain=held,
            poison=not held,
        )
        return StepEnd(
            run, order, job, "held" if held else "failed", failure.message, failure=failure, retry_count=retries
        )
    why = "its job was cancelled or expired" if record is not None else "its job is no longer there"
    return StepEnd(run, order, job, "skipped", why)
