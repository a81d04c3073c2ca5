"""Starting steps: a row and a job for each, in the commit that led to them; no bound refuses them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ulak.actions import decide
from ulak.actions.directory.resolution import Ask, find_targets
from ulak.actions.model import ActionRun, ActionStep, PlanStep, StepState, StepTarget, kind_of
from ulak.actions.records import note
from ulak.actions.steps.fresh import FreshCases
from ulak.channels.destination import Destinations
from ulak.clock import to_datetime
from ulak.spine.job import NewJob, Priority
from ulak.spine.store import Tx
from ulak.spine.units.enqueue import enqueue_owed


class Start(NamedTuple):
    """A step to begin: a fresh one, or one that goes on (then `row` is there), to another channel or at `until`."""

    run: ActionRun
    step: PlanStep
    row: ActionStep | None = None
    target: StepTarget | None = None
    until: int | None = None


class Starter:
    """Starts steps, in the transaction of whatever led to them."""

    def __init__(self, destinations: Destinations, fresh: FreshCases) -> None:
        self._destinations = destinations
        self._fresh = fresh

    def start(self, tx: Tx, starts: Sequence[Start]) -> list[ActionStep]:
        """Return the rows of the steps, their jobs enqueued. A step that is due is resolved now, and has its line."""
        if not starts:
            return []
        chosen = _choose(tx, starts)
        pairs = list(zip(starts, chosen, strict=True))
        traces = [start.run.trace for start in starts]
        jobs = enqueue_owed(tx, [self._job(start, target) for start, target in pairs], traces)
        return [self._row(tx, start, target, job) for (start, target), job in zip(pairs, jobs, strict=True)]

    def forget(self) -> None:
        """The directory changes."""
        self._fresh.clear()

    def line_of(self, target: StepTarget) -> tuple[str | None, int]:
        """(key, slots) of a job for this target: its destination's bulkhead and breaker, which every room shares."""
        return self._destinations.find(target.channel_type.upper(), target.target) or (None, 1)

    def _job(self, start: Start, target: StepTarget | None) -> NewJob:
        run, step = start.run, start.step
        channel_type = step.channel_type if target is None else target.channel_type
        key, number = (None, 1) if target is None else self.line_of(target)
        payload: dict[str, Any] = {"run": run.id, "step": step.step_order}
        if target is not None:
            payload["channel"] = target.channel_id
        return NewJob(
            kind_of(channel_type),
            payload,
            priority=Priority.HIGH if run.critical else Priority.NORMAL,
            key=key,
            slots=number,
            delay_seconds=step.delay_seconds if start.row is None and step.delay_seconds else None,
            due_at=None if start.until is None else to_datetime(start.until),
            on_uncertain=step.on_uncertain,
        )

    def _row(self, tx: Tx, start: Start, target: StepTarget | None, job: int) -> ActionStep:
        run, step, row, _, _ = start
        if row is None:
            due_at = tx.now + round(step.delay_seconds * 1000)
            row = ActionStep(run.id, step.step_order, StepState.WAITING.value, step.channel_type, job, due_at)
            if step.delay_seconds:
                note(row, tx.now, "wait", f"delay of {step.delay_seconds:g} s")
        row.job, row.state, row.ended_at, row.deferred_until = job, StepState.WAITING.value, None, None
        if target is not None:
            row.route_id, row.profile_id, row.channel_id = target.route_id, target.profile_id, target.channel_id
            row.channel_type = target.channel_type
            self._fresh.put(job, tx.now, run, step, row, target)
        return row


def _choose(tx: Tx, starts: Sequence[Start]) -> list[StepTarget | None]:
    asks = {place: _ask(start) for place, start in enumerate(starts) if _is_due(start)}
    found = find_targets(tx, asks.values()) if asks else {}
    chosen = [start.target for start in starts]
    best: dict[Ask, StepTarget | None] = {}
    for place, ask in asks.items():
        if ask in found:
            if ask not in best:
                best[ask] = next(iter(decide.resolve(starts[place].step, *found[ask]).targets), None)
            chosen[place] = best[ask]
    return chosen


def _is_due(start: Start) -> bool:
    return start.target is None and start.row is None and not start.step.delay_seconds


def _ask(start: Start) -> Ask:
    return Ask(start.run.plan_id, start.step.step_order, start.step.channel_type, start.run.device_id)
