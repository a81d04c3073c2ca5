"""Receipts of providers: a delivered message ends its wait, an undelivered one goes to the next channel.

A step that has ended had its event, so a late receipt leaves its run alone: `sent` becomes `delivered`, or has a code.
"""

from __future__ import annotations

from collections.abc import Sequence

from ulak.actions.model import ActionRun, ActionStep, StepState
from ulak.actions.plans.book import PlanBook
from ulak.actions.records import lock_runs, note, read_steps
from ulak.actions.steps import results
from ulak.actions.steps.ends import RECEIPT_KIND, Batch, StepEnd, StepEnds
from ulak.channels.receipts import DeliveryReceipt
from ulak.spine.job import NewJob
from ulak.spine.query import Queries
from ulak.spine.store import Tx
from ulak.spine.units.enqueue import enqueue_owed
from ulak.spine.units.withdraw import withdraw

sql = Queries("ulak.actions")

UNDELIVERED = "UNDELIVERED"
_ARRIVED = frozenset({"delivered", "read"})


def take_receipts(tx: Tx, receipts: Sequence[DeliveryReceipt], book: PlanBook, ends: StepEnds, *, told: bool) -> int:
    """Apply what is new; returns how many messages were known. A repeat says nothing new, so it changes nothing."""
    by_name = {one.provider_id: one for one in receipts if one.status != "sent"}
    if not by_name:
        return len(receipts)
    found = tx.rows(sql.find_steps_by_provider, names=sorted(by_name))
    runs = {run for run, _, _ in found}
    batch = Batch(lock_runs(tx, runs), read_steps(tx, runs))
    for run, order, name in found:
        row = batch.steps[run][order]
        if row.state == StepState.SENT and row.provider_message_id == name:
            _apply(tx, batch, batch.runs[run], row, by_name[name], book, ends, told=told)
    ends.write(tx, batch)
    return len(found)


def _apply(
    tx: Tx,
    batch: Batch,
    run: ActionRun,
    row: ActionStep,
    receipt: DeliveryReceipt,
    book: PlanBook,
    ends: StepEnds,
    *,
    told: bool,
) -> None:
    arrived = receipt.status in _ARRIVED
    if row.error_code is not None and not arrived:
        return  # told before
    batch.changed[row.run, row.step_order] = row
    note(row, tx.now, "receipt", receipt.status if receipt.code is None else f"{receipt.status}: {receipt.code}")
    if receipt.gone and row.channel_id is not None:
        batch.gone.add(row.channel_id)
    if told:
        results.tell_delivery(tx, run, row, "delivered" if arrived else "failed")
    if arrived:
        row.state, row.error_code, row.error_message = StepState.DELIVERED.value, None, None
    else:
        row.error_code, row.error_message = receipt.code or UNDELIVERED, "the provider says that it was not delivered"
    if row.ended_at is not None:
        return
    withdraw(tx, [] if row.timer is None else [row.timer])
    if arrived:
        step = book.version(tx, run.plan_id, run.plan_version).step(row.step_order)
        assert step is not None
        end = StepEnd(run.id, row.step_order, row.job, "sent", "a receipt came")
        ends.conclude(tx, batch, run, step, row, end)
    else:  # no need to wait longer
        job = NewJob(RECEIPT_KIND, {"run": row.run, "step": row.step_order})
        (row.timer,) = enqueue_owed(tx, [job], [run.trace])
