"""Runs one attempt of a job and turns its end into a settlement."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from ulak import codec
from ulak.clock import Clock
from ulak.errors import Conflict, CutOff, Permanent, Transient
from ulak.log import get_logger
from ulak.spine import probe
from ulak.spine.handler import Handlers
from ulak.spine.job import Job, Lease, Priority
from ulak.spine.lane import Lane
from ulak.spine.loops import classify
from ulak.spine.loops.destinations import DestinationGuard
from ulak.spine.loops.running import Attempt
from ulak.spine.outcome import DONE, Dead, Done, Outcome, Settlement
from ulak.spine.store import Store
from ulak.spine.telemetry import Telemetry

log = get_logger("ulak.worker")

_PRIORITIES = tuple(Priority)


class AttemptRunner:
    """Runs one attempt after another, and decides the outcome of each."""

    def __init__(
        self,
        store: Store,
        handlers: Handlers,
        clock: Clock,
        telemetry: Telemetry,
        destinations: DestinationGuard,
        lanes: dict[str, Lane],
        end: Callable[[Attempt, Outcome], None],
    ) -> None:
        self._store = store
        self._handlers = handlers
        self._clock = clock
        self._telemetry = telemetry
        self._destinations = destinations
        self._lanes = lanes
        self._end = end
        self.closing = False

    async def run(self, running: Attempt, task: asyncio.Task[Any]) -> None:
        """Run the handler and return its outcome, whatever happens."""
        if (verdict := running.verdict) is not None:  # cancelled while it waited for its turn
            self._end(running, verdict)
            return
        lease, handler, now = running.lease, running.handler, self._clock.now()
        try:
            payload = codec.decode(lease.payload) if handler.form is None else handler.form.load(lease.payload)
        except Permanent as misfit:  # its destination is not reached, so a breaker learns nothing
            self._end(running, self._misfit(lease, misfit))
            return
        if (stop := self._destinations.admit(running, payload, now)) is not None:
            self._end(running, stop)  # not a run, and not timed as one
            return
        self._note_start(running, task, now)
        job = _as_job(lease, payload, now, self._store.ids.mark, running.trace)
        if probe.listeners:
            probe.reach("worker.before_handler")
        try:
            returned = await (
                handler.call(job) if handler.lane == "async" else self._lanes[handler.lane].run(handler, job)
            )
            outcome = DONE if returned is None else classify.bounded(classify.answered(returned), handler, job)
            self._destinations.answered(running, outcome)
        except asyncio.CancelledError:
            if running.verdict is None and task.cancelling():  # the runner is being ended, or its own handler does that
                if not self.closing:
                    self._end(running, self._failed(running, job, _cancelled_inside()))
                raise
            outcome = running.verdict or self._failed(running, job, _cancelled_inside())
        except (KeyboardInterrupt, GeneratorExit):
            raise  # the process or the runner itself is being ended
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is a failed attempt, sys.exit() too
            running.uncertain = isinstance(error, CutOff)
            outcome = self._failed(running, job, error)
        finally:
            self._destinations.leave(running)
            if running.verdict is not None:
                classify.stopped(task)
        if probe.listeners:
            probe.reach("worker.after_handler")
        self._end(running, outcome)

    def _note_start(self, running: Attempt, task: asyncio.Task[Any], now: int) -> None:
        lease, handler = running.lease, running.handler
        running.started = self._clock.monotonic()
        running.task = task
        task.set_name(handler.consumer or handler.kind)
        seconds = (now - lease.due_at) / 1000
        running.times.wait.observe(seconds)
        if lease.due_at > lease.accepted_at and not lease.crashes:  # those wait for their rescue
            running.times.lateness.observe(seconds)
        if lease.crashes:
            self._telemetry.count("duplicate_runs", lease.kind)

    async def run_traced(self, running: Attempt, task: asyncio.Task[Any]) -> None:
        """The same inside a span; one that never started leaves none."""
        with self._telemetry.tracer.attempt(running.lease) as span:
            running.trace = span.trace
            try:
                await self.run(running, task)
            finally:
                if running.started is not None:
                    span.end(running.outcome)

    def _misfit(self, lease: Lease, misfit: Permanent) -> Dead:
        """The stored payload is not of the form that its handler declares."""
        self._telemetry.count("job_failures", lease.kind, classify.error_class(misfit))
        cause = classify.describe(misfit)
        log.info("attempt_failed", kind=lease.kind, job=lease.id, attempt=lease.attempt, error=cause)
        return Dead(cause, classify.error_class(misfit), misfit.code)

    def late(self, running: Attempt, now: float) -> Outcome | None:
        """Return the outcome of an attempt that takes longer than its kind allows; None for any other."""
        lease, handler = running.lease, running.handler
        if running.started is None or running.verdict is not None or now - running.started <= handler.timeout_seconds:
            return None
        self._telemetry.count("jobs_timed_out", lease.kind)
        job = Job(lease.id, lease.kind, None, lease.attempt, lease.epoch, lease.key)
        return self._failed(running, job, Transient(f"took longer than {handler.timeout_seconds} s"))

    def spoiled(self, one: Settlement, error: Exception) -> Settlement:
        """Return the settlement of an attempt whose result the store could not keep: a failure of this job alone."""
        handler = self._handlers.get(one.kind)
        assert handler is not None  # it has just run
        job = Job(one.id, one.kind, None, one.attempt, one.epoch, one.key)
        # Of a sound answer it was the unit or `then` that raised, and may not the next time.
        answer_is_sound = isinstance(one.outcome, Done) or (isinstance(one.outcome, Dead) and bool(one.outcome.then))
        failure = error if answer_is_sound else Permanent(classify.describe(error))
        self._note_failure(job, failure)  # which the destination has no part in
        outcome = classify.failed(failure, handler, job)
        resume = classify.resume_at(outcome, self._clock.now())
        does_more = isinstance(one.outcome, Done) and bool(one.outcome.unit or one.outcome.then)
        uncertain = isinstance(one.outcome, Done) and not does_more and isinstance(error, Conflict)
        return Settlement(one.id, one.epoch, one.kind, one.key, one.attempt, outcome, resume, uncertain)

    def _failed(self, running: Attempt, job: Job, error: BaseException) -> Outcome:
        self._note_failure(job, error)
        self._destinations.failed(running, error)
        return classify.failed(error, running.handler, job)

    def _note_failure(self, job: Job, error: BaseException) -> None:
        self._telemetry.count("job_failures", job.kind, classify.error_class(error))
        log.info("attempt_failed", kind=job.kind, job=job.id, attempt=job.attempt, error=classify.describe(error))


def _as_job(lease: Lease, payload: Any, now: int, mark: int, trace: str | None) -> Job:
    return Job(
        lease.id,
        lease.kind,
        payload,
        lease.attempt,
        lease.epoch,
        lease.key,
        _PRIORITIES[lease.prio],
        lease.crashes,
        lease.accepted_at,
        now,
        mark,
        trace,
    )


def _cancelled_inside() -> Transient:
    return Transient("something that the handler waited for was cancelled")
