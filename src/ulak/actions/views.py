"""Runs as observers see them: stored rows, and of unfinished steps what their jobs say at this moment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ulak.actions.model import ENDED_RUN, ActionPlan, ActionRun, ActionStep, PlanStep, RunState, StepState
from ulak.actions.plans.book import PlanBook
from ulak.actions.records import Steps, notes_of, read_run, read_steps, to_run
from ulak.actions.wire.events import instant
from ulak.spine.job import Record
from ulak.spine.query import Queries
from ulak.spine.store import Tx
from ulak.spine.units.records import read_record

sql = Queries("ulak.actions")

SEARCH_PAGE = 200
_LIVE = frozenset({"ready", "deferred", "running", "behind", "suspect"})


def read_view(tx: Tx, identifier: int, book: PlanBook) -> dict[str, Any]:
    """Return a run with its steps, in the words of the wire."""
    return _views(tx, [read_run(tx, identifier)], book)[0]


def list_views(
    tx: Tx, state: RunState | None, before: int, limit: int, book: PlanBook
) -> tuple[list[dict[str, Any]], str | None]:
    """Newest first, and the run after which the list goes on; None at the end."""
    found: list[dict[str, Any]] = []
    while len(found) < limit:
        runs = _page(tx, state, before, limit if state is None else SEARCH_PAGE)
        if not runs:
            return found, None
        before = runs[-1].id
        found += [view for view in _views(tx, runs, book) if state is None or view["state"] == state]
    found = found[:limit]
    return found, found[-1]["run_id"]


def _page(tx: Tx, state: RunState | None, before: int, limit: int) -> list[ActionRun]:
    if state is None:
        rows = tx.rows(sql.list_runs, before=before, n=limit)
    elif state in ENDED_RUN:
        rows = tx.rows(sql.list_ended, before=before, state=state.value, n=limit)
    else:
        rows = tx.rows(sql.list_unfinished, before=before, n=limit)
    return [to_run(row) for row in rows]


def _views(tx: Tx, runs: Sequence[ActionRun], book: PlanBook) -> list[dict[str, Any]]:
    steps = read_steps(tx, (run.id for run in runs))
    return [_view(tx, run, book.version(tx, run.plan_id, run.plan_version), steps) for run in runs]


def _view(tx: Tx, run: ActionRun, plan: ActionPlan, steps: Steps) -> dict[str, Any]:
    rows = steps.get(run.id, {})
    shown = [_step_view(tx, run, step, rows.get(step.step_order)) for step in plan.steps]
    begun = any(step["state"] != StepState.WAITING for step in shown) or len(rows) > 1
    state = RunState.RUNNING if run.state == RunState.ACCEPTED and begun else RunState(run.state)
    return {
        "run_id": tx.ids.to_text(run.id),
        "evaluation_key": run.evaluation_key,
        "action_plan_id": run.plan_id,
        "plan_version": run.plan_version,
        "state": state.value,
        "trace_id": run.trace_id,
        "device_id": run.device_id,
        "stream_id": run.stream_id,
        "group_id": run.group_id,
        "rule_id": run.rule_id,
        "critical": run.critical,
        "accepted_at": instant(run.accepted_at),
        "ended_at": None if run.ended_at is None else instant(run.ended_at),
        "ended_by": run.ended_by,
        "steps": shown,
    }


def _step_view(tx: Tx, run: ActionRun, step: PlanStep, row: ActionStep | None) -> dict[str, Any]:
    if row is None:
        state = StepState.SKIPPED if run.ended_at is not None else StepState.WAITING
        return _shown(step.step_order, step.channel_type, state, 0, None)
    record = read_record(tx, row.job) if _may_be_underway(row) else None
    state, retries = StepState(row.state), row.retry_count
    if record is not None and record.status in _LIVE and row.state != StepState.SENT:
        begun = record.status == "running" or record.attempt > 0
        state = StepState.SENDING if begun else StepState.WAITING
        retries = max(record.attempt - 1 - record.crashes, 0)
    more = {
        "recipient_profile_id": row.profile_id,
        "recipient_channel_id": row.channel_id,
        "provider_message_id": row.provider_message_id,
        "due_at": instant(row.due_at),
        "ended_at": None if row.ended_at is None else instant(row.ended_at),
    }
    return _shown(step.step_order, row.channel_type, state, retries, row.error_code) | more


def _may_be_underway(row: ActionStep) -> bool:
    """A failed one too: somebody may have sent it again."""
    return row.ended_at is None or row.state in (StepState.FAILED, StepState.HELD)


def _shown(order: int, channel: str, state: StepState, retries: int, code: str | None) -> dict[str, Any]:
    return {
        "step_order": order,
        "channel_type": channel,
        "state": state.value,
        "retry_count": retries,
        "error_code": code,
    }


# Explaining


def explain(tx: Tx, identifier: int) -> list[dict[str, Any]]:
    """Every decision about a run, in the order in which they were made."""
    run = read_run(tx, identifier)
    told = [_entry(run.accepted_at, None, "accept", f"plan {run.plan_id} version {run.plan_version}")]
    rows = read_steps(tx, [identifier])[identifier].values()
    for row in rows:
        notes = notes_of(row)
        told += [_entry(at, row.step_order, decision, why) for at, decision, why, _ in notes]
        for job in sorted({row.job, *(job for *_, job in notes)}):
            told += _retries(row, read_record(tx, job))
    if run.ended_at is not None:
        told.append(_entry(run.ended_at, None, "end", f"the run is {run.state}{_cause(run, rows)}"))
    return sorted(told, key=lambda entry: str(entry["at"]))


def _cause(run: ActionRun, rows: Iterable[ActionStep]) -> str:
    """Of a run's end, where its steps do not tell."""
    if run.ended_by is not None:
        return f" by {run.ended_by}"
    skipped = run.state == RunState.FAILED and all(row.state == StepState.SKIPPED for row in rows)
    return ": every step was skipped" if skipped else ""


def _retries(row: ActionStep, record: Record | None) -> Iterable[dict[str, Any]]:
    for entry in () if record is None else record.timeline:
        if entry.word in ("retried", "snoozed", "uncertain"):
            why = str(entry.detail.get("reason", "")) or "its process died, or nobody knows how the attempt ended"
            unsure = why.startswith("Uncertain:")  # the attempt was handed over and nobody answered
            decision = "uncertain" if unsure else {"retried": "retry", "snoozed": "wait"}.get(entry.word, entry.word)
            at = entry.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
            yield _told(at, row.step_order, decision, f"attempt {entry.attempt}: {why}")


def _entry(at: int, step_order: int | None, decision: str, why: str) -> dict[str, Any]:
    return _told(instant(at), step_order, decision, why)


def _told(at: str, step_order: int | None, decision: str, why: str) -> dict[str, Any]:
    where = "run" if step_order is None else f"step {step_order}"
    return {"at": at, "step_order": step_order, "decision": decision, "why": why, "line": f"{where}: {decision}: {why}"}
