"""Stopping a run: by cancelling it, or because somebody has acknowledged it. Waiting steps are taken back."""

from __future__ import annotations

from ulak.actions.model import ActionRun, ActionStep, RunState, StepState
from ulak.actions.plans.book import PlanBook
from ulak.actions.records import lock_runs, missing_run, note, read_steps
from ulak.actions.steps.ends import Batch, StepEnd, StepEnds
from ulak.errors import IllegalTransition
from ulak.spine.store import Tx
from ulak.spine.units.withdraw import withdraw


def stop_run(tx: Tx, identifier: int, state: RunState, who: str, book: PlanBook, ends: StepEnds) -> ActionRun:
    """Queued, delayed, deferred and retrying steps are over at once; a send that is under way ends by itself."""
    run = lock_runs(tx, [identifier]).get(identifier)
    if run is None:
        raise missing_run(tx.ids.to_text(identifier))
    if run.ended_at is not None:
        if run.state == state:
            return run  # said twice
        if RunState.CANCELLED in (state, run.state):
            raise IllegalTransition(
                f"run {tx.ids.to_text(identifier)} is {run.state} already; there is nothing to stop"
            )
    batch = Batch({identifier: run}, read_steps(tx, [identifier]))
    run.state, run.ended_at, run.ended_by = state, run.ended_at or tx.now, who
    batch.ended[identifier] = run
    for row in batch.steps[identifier].values():
        if row.ended_at is None:
            _stop_step(tx, batch, run, row, book, ends)
    ends.write(tx, batch)
    return run


def _stop_step(tx: Tx, batch: Batch, run: ActionRun, row: ActionStep, book: PlanBook, ends: StepEnds) -> None:
    waits_for_receipt = row.state == StepState.SENT
    job = row.timer if waits_for_receipt else row.job
    shared = row.deferred_until is not None  # a merged message is others' too
    if not shared and job is not None and not withdraw(tx, [job]):
        return  # it is being sent; its end finds the run stopped
    batch.changed[row.run, row.step_order] = row
    note(row, tx.now, "stop", f"the run was {run.state} by {run.ended_by}")
    if waits_for_receipt:
        step = book.version(tx, run.plan_id, run.plan_version).step(row.step_order)
        assert step is not None
        end = StepEnd(run.id, row.step_order, row.job, "unreceipted", "the run was stopped")
        ends.conclude(tx, batch, run, step, row, end)
        return
    row.state, row.ended_at, row.deferred_until = StepState.SKIPPED.value, tx.now, None
