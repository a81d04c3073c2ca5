"""Results of a step that has ended: its event, its dead letter, and its line in the audit chain."""

from __future__ import annotations

import hashlib

from ulak.actions.decide import StepFailure
from ulak.actions.model import ROOM, ActionRun, ActionStep
from ulak.actions.wire import events as wire
from ulak.ids import Ids
from ulak.spine.store import Tx
from ulak.spine.units.audit import record as record_audit


def tell_executed(tx: Tx, run: ActionRun, row: ActionStep) -> None:
    data = wire.ExecutedData(
        run.group_id,
        run.rule_id,
        run.plan_id,
        row.step_order,
        row.channel_type,
        row.state,  # type: ignore[arg-type]
        row.provider_message_id,
    )
    meta = wire.meta_of(run.trace_id, tx.now, row.process_ms)
    _tell(tx, run, wire.EXECUTED_TOPIC, wire.ActionExecuted(wire.EXECUTED, meta, wire.context_of(run), data, None))


def tell_downlink(tx: Tx, run: ActionRun, row: ActionStep, topic: str, subject: str | None, body: str) -> None:
    data = wire.DownlinkData(run.group_id, run.rule_id, run.plan_id, row.step_order, subject, body)
    meta = wire.meta_of(run.trace_id, tx.now, row.process_ms)
    _tell(tx, run, topic, wire.DownlinkRequested(wire.DOWNLINK_REQUESTED, meta, wire.context_of(run), data, None))


def tell_failed(tx: Tx, run: ActionRun, row: ActionStep, failure: StepFailure) -> None:
    """On the failed topic, and flat as a dead letter."""
    failed_at = wire.instant(tx.now)
    error = wire.FailedError(failure.stage, failure.code, failure.message, failure.retryable, failed_at)
    data = wire.FailedData(run.group_id, run.rule_id, run.plan_id, row.step_order, row.channel_type)
    meta = wire.meta_of(run.trace_id, tx.now, row.process_ms)
    _tell(tx, run, wire.FAILED_TOPIC, wire.ActionFailed(wire.FAILED, meta, wire.context_of(run), data, error))
    _tell(tx, run, wire.DEAD_TOPIC, dead_letter(run, row, tx.ids))


def tell_delivery(tx: Tx, run: ActionRun, row: ActionStep, status: str) -> None:
    """A receipt has come."""
    data = wire.DeliveryData(
        run.group_id,
        run.rule_id,
        run.plan_id,
        row.step_order,
        row.channel_type,
        status,  # type: ignore[arg-type]
        row.provider_message_id or "",
    )
    meta = wire.meta_of(run.trace_id, tx.now, 0)
    value = wire.DeliveryUpdated(wire.DELIVERY_UPDATED, meta, wire.context_of(run), data, None)
    _tell(tx, run, wire.RECEIPTS_TOPIC, value)


def _tell(tx: Tx, run: ActionRun, topic: str, value: object) -> None:
    tx.emit(wire.MESSAGE_EVENT, run.id, ROOM, wire.message(topic, run.device_id, value, run.trace))


def dead_letter(run: ActionRun, row: ActionStep, ids: Ids) -> wire.ActionDeadLetter:
    """A failed step as the dead-letter topic and the workbench have it."""
    return wire.ActionDeadLetter(
        str(row.job),
        ids.to_text(run.id),
        run.plan_id,
        row.step_order,
        row.channel_type,
        row.error_code or "",
        row.error_message or "",
        row.retry_count,
        wire.instant(row.ended_at or 0),
        row.reason or "non_retryable",  # type: ignore[arg-type]
        run.evaluation_key,
        run.trace_id,
        run.device_id,
        run.stream_id,
        run.group_id,
        run.rule_id,
    )


def keep_in_chain(tx: Tx, run: ActionRun, row: ActionStep, text: str) -> None:
    """The text itself may name a person, and a chain never forgets: it has the text's digest."""
    detail = {
        "action_plan_id": run.plan_id,
        "plan_version": run.plan_version,
        "device_id": run.device_id,
        "trace_id": run.trace_id,
        "text_sha256": hashlib.sha256(text.encode()).hexdigest(),
    }
    record_audit(tx, ROOM, "actions.step.audited", f"run {tx.ids.to_text(run.id)} step {row.step_order}", detail)
