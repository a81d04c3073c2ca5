"""The room's handlers: a step's job decides, sends and says how it ended; the end is written as it is settled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ulak.actions import decide
from ulak.actions.brakes import Brakes
from ulak.actions.decide import HELD_BY_BRAKE, Limits, StepFailure
from ulak.actions.model import UNADDRESSED, RunState, StepState, StepTarget, kind_of
from ulak.actions.plans import render
from ulak.actions.plans.render import Renderer, Words
from ulak.actions.steps import failures
from ulak.actions.steps.cases import Case, Cases, Wanted
from ulak.actions.steps.delivery import Delivery
from ulak.actions.steps.digest import Digests
from ulak.actions.steps.ends import StepEnd, StepEnds
from ulak.actions.steps.fresh import FreshCases
from ulak.actions.steps.variables import variables_of
from ulak.backoff import Backoff
from ulak.clock import Clock
from ulak.spine.job import Job
from ulak.spine.outcome import Cancel, Dead, Done, Outcome

_STOPPED = frozenset({RunState.CANCELLED, RunState.ACKNOWLEDGED})
NO_ATTEMPT: dict[str, Any] = {"retry_count": None, "process_ms": None}  # the numbers of the last one stand
_OPEN = frozenset({StepState.WAITING, StepState.FAILED, StepState.HELD})  # a redrive begins with a failed or held one


class StepBackoff(Backoff):
    """1, 5, 15 s, as the document has it."""

    def delay_seconds(self, attempt: int, chance: Any = None) -> float:
        return decide.delay_seconds(attempt - 1, None, chance)


@dataclass(frozen=True, slots=True)
class RunnerOptions:
    limits: Mapping[str, Limits]
    line_of: Callable[[StepTarget], tuple[str | None, int]]
    quiet_hours: str | None = None
    time_zone: str | None = None
    acknowledge_url: Callable[[int], str] = field(default=str)


@dataclass(frozen=True, slots=True)
class Trial:
    """One attempt of a step at one target."""

    job: Job
    case: Case
    began: float

    @property
    def retry_count(self) -> int:
        """A death of our process is not a retry."""
        return max(self.job.attempt - 1 - self.job.crashes, 0)


class StepRunner:
    """Runs a step's job from its start to its end."""

    def __init__(
        self,
        options: RunnerOptions,
        cases: Cases,
        ends: StepEnds,
        renderer: Renderer,
        delivery: Delivery,
        brakes: Brakes,
        digests: Digests,
        fresh: FreshCases,
        clock: Clock,
    ) -> None:
        self._options = options
        self._cases = cases
        self._ends = ends
        self._renderer = renderer
        self._delivery = delivery
        self._brakes = brakes
        self._digests = digests
        self._fresh = fresh
        self._clock = clock

    async def run(self, job: Job) -> Outcome:
        payload = job.payload
        if "digest" in payload:
            return await self._digests.run(job)
        case = (
            None
            if job.attempt > 1 or job.crashes
            else self._fresh.take(job.id, self._clock.now(), shared=self._delivery.shared)
        )
        if case is None:
            case = await self._cases.get(Wanted(payload["run"], payload["step"], payload.get("channel")))
        if case is None or case.row.job != job.id or case.row.state not in _OPEN:
            return Cancel("its step is over, or its run is no longer there")
        trial = Trial(job, case, self._clock.monotonic())
        if case.run.state in _STOPPED and case.row.state == StepState.WAITING:
            return self._done(trial, "skipped", f"the run was {case.run.state}")
        try:
            variables = self._variables(trial)
            if not self._renderer.holds(case.step, variables, case.run.language):
                return self._done(trial, "skipped", f"its condition is false: {case.step.condition}")
            if case.step.channel_type in UNADDRESSED:
                return self._unaddressed(trial, self._words(trial, variables))
            return await self._addressed(trial, variables)
        except render.Unreadable as error:
            return self._dead(trial, render.failure_of(error))

    def _variables(self, trial: Trial) -> dict[str, Any]:
        mended = trial.job.payload
        step = (
            trial.case.step if "body" not in mended else msgspec.structs.replace(trial.case.step, body=mended["body"])
        )
        return variables_of(trial.case.run, step, mended.get("variables", {}), self._options.acknowledge_url)

    def _words(self, trial: Trial, variables: dict[str, Any]) -> Words:
        """Return the texts to send, with any that were mended in the dead letter."""
        mended = {name: trial.job.payload[name] for name in ("subject", "body") if name in trial.job.payload}
        step = trial.case.step
        if mended:
            step = msgspec.structs.replace(step, template=None, **mended)
        return self._renderer.words(step, variables, trial.case.run.language)

    def _unaddressed(self, trial: Trial, words: Words) -> Done:
        if trial.case.step.channel_type == "downlink":
            return self._done(trial, "handed_over", "to the downlink topic", subject=words.subject, body=words.body)
        name = f"audit:{self._delivery.name_of(trial.job.id)}"
        return self._done(trial, "sent", "a line in the audit chain", body=words.body, provider_message_id=name)

    async def _addressed(self, trial: Trial, variables: dict[str, Any]) -> Outcome:
        target, job = trial.case.target, trial.job
        if target is None:
            failure = trial.case.resolution.failure
            return self._dead(trial, failure) if failure else self._dead(trial, _nobody_left(trial), **NO_ATTEMPT)
        if (kind_of(target.channel_type), self._options.line_of(target)[0]) != (job.kind, job.key):
            return self._done(trial, "hop", f"to {_shown(target)}", onto=target)
        words = self._words(trial, variables)
        options, redriven = self._options, trial.case.row.state != StepState.WAITING
        passes = trial.case.run.critical or redriven  # what a person sends again goes now
        hours, zone = options.quiet_hours, options.time_zone
        pause = decide.pause_of(target, self._clock.now(), critical=passes, quiet_hours=hours, time_zone=zone)
        if pause is not None:
            return self._done(trial, "deferred", pause.why, until=pause.until, target=target, onto=target)
        if trial.retry_count == 0:  # so after a death it is counted twice, rather than not at all
            why = await self._brakes.count(target, words.body, passes=passes)
            if why is not None:
                return self._dead(trial, StepFailure("action_execute", HELD_BY_BRAKE, why), held=True)
        return await self._send(trial, target, words)

    async def _send(self, trial: Trial, target: StepTarget, words: Words) -> Outcome:
        limits = self._options.limits[target.channel_type].for_step(trial.case.step)
        run = trial.case.run
        metadata: dict[str, Any] = {
            "run_id": self._delivery.name_of(run.id),
            "action_plan_id": run.plan_id,
            "step_order": trial.case.step.step_order,
            "trace_id": run.trace_id,
            "device_id": run.device_id,
        }
        if target.channel_type == "slack":
            metadata["blocks"] = _with_button(words.body, self._options.acknowledge_url(run.id))
        answer = await self._delivery.hand_over(trial.job, target, words, metadata, limits)
        if isinstance(answer, StepFailure):
            return await self._failed(trial, target, answer, limits)
        why = f"to {_shown(target)}, attempt {trial.retry_count + 1}"
        return self._done(trial, "sent", why, target=target, provider_message_id=answer)

    async def _failed(self, trial: Trial, target: StepTarget, failure: StepFailure, limits: Limits) -> Outcome:
        hold = trial.case.step.on_uncertain == "hold"
        verdict = decide.after_failure(failure, trial.retry_count, limits.retries, hold=hold)
        if verdict == "retry":
            raise failures.as_error(failure, decide.delay_seconds(trial.retry_count, failure.retry_after_seconds))
        if verdict == "hold":
            return self._dead(trial, failure, target, held=True)
        other = await self._cases.get(Wanted(trial.case.run.id, trial.case.step.step_order, None, again=True))
        if other is None or other.target is None or other.run.state in _STOPPED:
            return self._dead(trial, failure, target)
        why = f"{failure.code} at {_shown(target)}; now {_shown(other.target)}"
        return self._done(trial, "next", why, target=target, onto=other.target, failure=failure)

    async def receipt_due(self, job: Job) -> Outcome:
        """No delivered receipt came in time: the next channel, if there is one."""
        case = await self._cases.get(Wanted(job.payload["run"], job.payload["step"], None, again=True))
        if case is None or case.row.timer != job.id or case.row.ended_at is not None:
            return Cancel("its receipt came, or its run is no longer there")
        trial = Trial(job, case, self._clock.monotonic())
        undelivered = case.row.error_code  # which a receipt has told
        why = undelivered or f"no delivered receipt within {case.step.receipt_seconds:g} s"
        if case.run.ended_at is not None or (case.target is None and undelivered is None):
            return self._done(trial, "unreceipted", f"{why}, and no channel is left", **NO_ATTEMPT)
        onto = "no channel is left" if case.target is None else f"now {_shown(case.target)}"
        return self._done(trial, "next", f"{why}; {onto}", onto=case.target, **NO_ATTEMPT)

    def _done(self, trial: Trial, what: Any, why: str, **more: Any) -> Done:
        then = (self._ends.end, self._end(trial, what, why, **more))
        return Done(then=then) if what == "sent" else failures.done_after(more.get("failure"), then)

    def _dead(
        self, trial: Trial, failure: StepFailure, target: StepTarget | None = None, *, held: bool = False, **more: Any
    ) -> Dead:
        end = self._end(trial, "held" if held else "failed", failure.message, failure=failure, target=target, **more)
        error_class = "transient" if failure.retryable else "permanent"
        if held and failure.uncertain:
            error_class = "uncertain"
        unsent = target is None or failure.unsent
        then = (self._ends.end, end)
        return Dead(f"{failure.code}: {failure.message}", error_class, failure.code, then=then, unsent=unsent)

    def _end(self, trial: Trial, what: Any, why: str, **more: Any) -> StepEnd:
        millis = round((self._clock.monotonic() - trial.began) * 1000)
        numbers: dict[str, Any] = {"retry_count": trial.retry_count, "process_ms": millis}
        place = (trial.case.run.id, trial.case.step.step_order, trial.job.id)
        return StepEnd(*place, what, why, **{**numbers, **more})


def _nobody_left(trial: Trial) -> StepFailure:
    row = trial.case.row
    why = f"every channel was tried; the last one failed with {row.error_code}: {row.error_message}"
    return StepFailure("action_execute", row.error_code or "NO_VERIFIED_CHANNEL", why)


def _with_button(text: str, link: str) -> list[dict[str, Any]]:
    """A Slack message with a button whose value is the token of the link: a tap acknowledges the run."""
    label = {"type": "plain_text", "text": "Acknowledge"}
    button = {"type": "button", "action_id": "acknowledge", "value": link.rpartition("/")[2], "text": label}
    said = {"type": "section", "text": {"type": "plain_text", "text": text[:3000]}}
    return [said, {"type": "actions", "elements": [button]}]


def _shown(target: StepTarget) -> str:
    """A target by its numbers: what it is stays in the directory."""
    return f"{target.channel_type} channel {target.channel_id} of profile {target.profile_id}"
