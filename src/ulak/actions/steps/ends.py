"""Ending steps: the step's row, its event, its dead letter and the next step's job, in the commit that settles the job.

Merged: however many steps end in a commit, the number of statements is the same.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ulak import codec
from ulak.actions import decide
from ulak.actions.decide import StepFailure
from ulak.actions.model import (
    ROOM,
    ActionRun,
    ActionStep,
    PlanStep,
    RunState,
    StepState,
    StepTarget,
    kind_of,
)
from ulak.actions.plans.book import PlanBook
from ulak.actions.records import Steps, end_runs, lock_runs, note, read_steps, save_steps, tried_by
from ulak.actions.steps import results
from ulak.actions.steps.starts import Start, Starter
from ulak.clock import to_datetime
from ulak.spine.job import Job, NewJob
from ulak.spine.query import Queries
from ulak.spine.store import Tx
from ulak.spine.units.enqueue import enqueue_owed

sql = Queries("ulak.actions")

RECEIPT_KIND = kind_of("receipt")

EndWord = Literal["sent", "failed", "held", "skipped", "handed_over", "next", "hop", "deferred", "unreceipted"]
_STATES: dict[str, StepState] = {
    "sent": StepState.SENT,
    "failed": StepState.FAILED,
    "held": StepState.HELD,
    "skipped": StepState.SKIPPED,
    "handed_over": StepState.HANDED_OVER,
    "unreceipted": StepState.SENT,
}


@dataclass(frozen=True, slots=True)
class StepEnd:
    """How a step's job ended. `target` is whom it was for, `onto` whom it is for now.

    `retry_count` and `process_ms` are those of the last attempt; None where there was no other one.
    """

    run: int
    step_order: int
    job: int
    what: EndWord
    why: str
    target: StepTarget | None = None
    onto: StepTarget | None = None
    failure: StepFailure | None = None
    retry_count: int | None = None
    process_ms: int | None = None
    provider_message_id: str | None = None
    subject: str | None = None
    body: str = ""
    until: int | None = None


@dataclass(frozen=True, slots=True)
class DigestEnd:
    """The steps that a merged message ends, and the job that carried it: others may wait behind it."""

    job: Job
    target: StepTarget | None
    ends: Sequence[StepEnd]


@dataclass(slots=True)
class Batch:
    """The changes of one commit: collected step by step, written together."""

    runs: dict[int, ActionRun]
    steps: Steps
    changed: dict[tuple[int, int], ActionStep] = field(default_factory=dict)
    ended: dict[int, ActionRun] = field(default_factory=dict)
    starts: list[Start] = field(default_factory=list)
    timers: list[tuple[ActionStep, float]] = field(default_factory=list)
    deferred: list[tuple[ActionStep, StepTarget]] = field(default_factory=list)
    gone: set[int] = field(default_factory=set)
    digests: dict[tuple[int, int], int] = field(default_factory=dict)


class StepEnds:
    """Ends steps for jobs, receipts and people. `end` is what a handler's outcome carries."""

    def __init__(self, book: PlanBook, starter: Starter, downlink_topic: str) -> None:
        self._book = book
        self._starter = starter
        self._downlink_topic = downlink_topic

    def end_digests(self, tx: Tx, digests: Sequence[DigestEnd]) -> None:
        """Of jobs that end several steps each. Those for which a message had no place go with the next one."""
        self.end(tx, [end for digest in digests for end in digest.ends])
        for digest in digests:
            channel, until = digest.job.payload["digest"], digest.job.payload["until"]
            if tx.row(sql.find_digest, channel=channel, until=until) is not None:
                (following,) = enqueue_owed(
                    tx, [self._digest(channel, until, digest.job.kind, digest.target)], [digest.job.trace]
                )
                tx.execute(sql.move_digest, channel=channel, until=until, job=digest.job.id, following=following)

    def end(self, tx: Tx, ends: Sequence[StepEnd]) -> None:
        wanted = {end.run for end in ends}
        batch = Batch(lock_runs(tx, wanted), read_steps(tx, wanted))
        for end in ends:
            run, row = batch.runs.get(end.run), batch.steps.get(end.run, {}).get(end.step_order)
            if run is not None and row is not None and end.job in (row.job, row.timer):
                self._end_one(tx, batch, run, row, end)
        self.write(tx, batch)

    def _end_one(self, tx: Tx, batch: Batch, run: ActionRun, row: ActionStep, end: StepEnd) -> None:
        batch.changed[row.run, row.step_order] = row
        plan = self._book.version(tx, run.plan_id, run.plan_version)
        step = plan.step(row.step_order)
        assert step is not None  # the run keeps its plan's version
        row.retry_count = row.retry_count if end.retry_count is None else end.retry_count
        row.process_ms = row.process_ms if end.process_ms is None else end.process_ms
        note(row, tx.now, end.what, end.why)
        if end.target is not None:
            _aim(row, end.target)
            if end.failure is not None and end.failure.gone:
                batch.gone.add(end.target.channel_id)
        if end.what in ("next", "hop", "deferred"):
            self._move_on(batch, run, step, row, end)
            return
        row.state = _STATES[end.what].value
        row.provider_message_id = end.provider_message_id or row.provider_message_id
        if end.what == "sent" and step.receipt_seconds is not None and not run.ended_at:
            row.error_code = row.error_message = None  # of the channels before; a receipt may tell of this one
            row.deferred_until = None
            batch.timers.append((row, step.receipt_seconds))
            return
        self.conclude(tx, batch, run, step, row, end)

    def _move_on(self, batch: Batch, run: ActionRun, step: PlanStep, row: ActionStep, end: StepEnd) -> None:
        if end.what == "next" and row.channel_id is not None:
            row.tried = codec.encode_text(sorted(tried_by(row) | {row.channel_id}))
        if end.failure is not None:
            row.error_code, row.error_message = end.failure.code, end.failure.message
        if end.what == "deferred" and end.target is not None and run.ended_at is None and step.on_uncertain != "hold":
            row.deferred_until = end.until
            batch.deferred.append((row, end.target))
        elif run.ended_at is None:  # a step that must not go twice is not merged: it waits on its own
            row.timer = None
            batch.starts.append(Start(run, step, row, end.onto, end.until))
        else:  # somebody has stopped the run meanwhile
            row.state = StepState.SKIPPED.value

    def conclude(self, tx: Tx, batch: Batch, run: ActionRun, step: PlanStep, row: ActionStep, end: StepEnd) -> None:
        """The step is over: say so, and go on with the run."""
        batch.changed[row.run, row.step_order] = row
        row.ended_at, row.deferred_until, row.timer = tx.now, None, None
        failure = end.failure
        if row.state in (StepState.FAILED, StepState.HELD) and failure is not None:
            row.error_code, row.error_message = failure.code, failure.message
            row.reason = "uncertain" if end.what == "held" and failure.uncertain else decide.reason_of(failure)
            results.tell_failed(tx, run, row, failure)
        elif row.state != StepState.SKIPPED:
            row.error_code = row.error_message = row.reason = None
            self._tell_success(tx, run, row, end)
        self._go_on(tx, batch, run, step)

    def _tell_success(self, tx: Tx, run: ActionRun, row: ActionStep, end: StepEnd) -> None:
        if row.channel_type == "audit" and end.what == "sent":
            results.keep_in_chain(tx, run, row, end.body)
        if row.state == StepState.HANDED_OVER:
            results.tell_downlink(tx, run, row, self._downlink_topic, end.subject, end.body)
        results.tell_executed(tx, run, row)

    def _go_on(self, tx: Tx, batch: Batch, run: ActionRun, step: PlanStep) -> None:
        states = {order: StepState(row.state) for order, row in batch.steps[run.id].items()}
        plan = self._book.version(tx, run.plan_id, run.plan_version)
        if run.state in (RunState.CANCELLED, RunState.ACKNOWLEDGED):
            return
        onward = decide.onward(plan, step, states)
        if onward.step is not None and (run.ended_at is None or run.state == RunState.FAILED):
            if run.ended_at is not None:  # a redrive opens it again
                run.state, run.ended_at, run.ended_by = RunState.ACCEPTED, None, None
                batch.ended[run.id] = run
            batch.starts.append(Start(run, onward.step))
        elif run.ended_at is not None or not _is_open(batch, run.id):
            state = onward.state or decide.final_state(states.values())
            if run.state != state:
                run.state, run.ended_at = state, tx.now
                batch.ended[run.id] = run

    def write(self, tx: Tx, batch: Batch) -> None:
        if left := _left(batch.starts):
            tx.insert_rows(sql.keep_former, left)
        for row in self._starter.start(tx, batch.starts):
            batch.changed[row.run, row.step_order] = row
        if batch.timers:
            jobs = [_timer(row, seconds) for row, seconds in batch.timers]
            traces = [batch.runs[row.run].trace for row, _ in batch.timers]
            for (row, _), job in zip(batch.timers, enqueue_owed(tx, jobs, traces), strict=True):
                row.timer = job
        for row, target in batch.deferred:
            row.job = self._digest_job(tx, batch, row, target)
        save_steps(tx, batch.changed.values())
        if batch.ended:
            end_runs(tx, list(batch.ended.values()))
        if batch.gone:
            self._starter.forget()
            fail_channels(tx, batch.gone)

    def _digest_job(self, tx: Tx, batch: Batch, row: ActionStep, target: StepTarget) -> int:
        """The job that sends what is put off for this channel to this instant: one that is there, or a new one."""
        assert row.deferred_until is not None
        key = (target.channel_id, row.deferred_until)
        found = batch.digests.get(key)
        if found is None:
            known = tx.row(sql.find_digest, channel=key[0], until=key[1])
            found = None if known is None else int(known[0])
        if found is None:
            (found,) = enqueue_owed(
                tx, [self._digest(*key, kind_of(target.channel_type), target)], [batch.runs[row.run].trace]
            )
        batch.digests[key] = found
        return found

    def _digest(self, channel: int, until: int, kind: str, target: StepTarget | None) -> NewJob:
        key, slots = (None, 1) if target is None else self._starter.line_of(target)
        payload = {"digest": channel, "until": until}
        return NewJob(kind, payload, key=key, slots=slots, due_at=to_datetime(until))


def fail_channels(tx: Tx, channels: Collection[int]) -> None:
    """A directory that heals: what is gone is not tried again until somebody verifies it anew."""
    if channels:
        for channel, profile, kind in tx.rows(sql.fail_channels, ids=sorted(channels), now=tx.now):
            tx.emit("actions.channel.failed", channel, ROOM, {"profile_id": profile, "channel_type": kind})


def _left(starts: Sequence[Start]) -> list[tuple[int, int]]:
    """(profile, run) of steps that go on to somebody else."""
    left: set[tuple[int, int]] = set()
    for _, _, row, target, _ in starts:
        if row is not None and target is not None and row.profile_id not in (None, target.profile_id):
            left.add((row.profile_id, row.run))
    return sorted(left)


def _is_open(batch: Batch, run: int) -> bool:
    return any(row.ended_at is None for row in batch.steps[run].values())


def _aim(row: ActionStep, target: StepTarget) -> None:
    row.profile_id, row.channel_id, row.channel_type = target.profile_id, target.channel_id, target.channel_type
    row.route_id = row.route_id if target.route_id is None else target.route_id


def _timer(row: ActionStep, seconds: float) -> NewJob:
    return NewJob(RECEIPT_KIND, {"run": row.run, "step": row.step_order}, delay_seconds=seconds)
