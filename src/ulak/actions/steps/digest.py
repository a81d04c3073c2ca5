"""Quiet hours defer and merge: what was put off for one channel to one instant goes out as one message."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ulak.actions.brakes import Brakes
from ulak.actions.decide import Limits, StepFailure, delay_seconds
from ulak.actions.model import ActionStep, StepTarget
from ulak.actions.plans.render import Renderer, Unreadable, Words
from ulak.actions.steps.cases import Case, Cases, Wanted
from ulak.actions.steps.delivery import Delivery
from ulak.actions.steps.ends import StepEnd, StepEnds
from ulak.actions.steps.failures import as_error
from ulak.actions.steps.variables import variables_of
from ulak.spine.job import Job
from ulak.spine.outcome import Cancel, Done, Outcome
from ulak.spine.query import Queries
from ulak.spine.store import Store, Tx

sql = Queries("ulak.actions")

MAX_MERGED = 50
_PAGE = 1000


def find_members(tx: Tx, channel: int, until: int, job: int) -> list[ActionStep]:
    rows = tx.rows(sql.find_deferred, channel=channel, until=until, n=_PAGE)
    return [step for row in rows if (step := ActionStep(*row)).job == job]


def merge(parts: Sequence[Words]) -> Words:
    """One stays as it is; of several each keeps its place."""
    if len(parts) == 1:
        return parts[0]
    bodies = [f"{part.subject}\n{part.body}" if part.subject else part.body for part in parts]
    return Words(f"{len(parts)} messages", "\n\n".join(bodies))


class Digests:
    def __init__(
        self,
        open_store: Callable[[], Store],
        cases: Cases,
        ends: StepEnds,
        renderer: Renderer,
        delivery: Delivery,
        brakes: Brakes,
        limits: Callable[[str], Limits],
        acknowledge_url: Callable[[int], str],
    ) -> None:
        self._store = open_store
        self._cases = cases
        self._ends = ends
        self._renderer = renderer
        self._delivery = delivery
        self._brakes = brakes
        self._limits = limits
        self._acknowledge_url = acknowledge_url

    async def run(self, job: Job) -> Outcome:
        channel, until = job.payload["digest"], job.payload["until"]
        rows = await self._store().read(find_members, channel, until, job.id)
        found = [await self._cases.get(Wanted(row.run, row.step_order, channel)) for row in rows]
        cases = [case for case in found if case is not None]
        target = next((case.target for case in cases if case.target and case.target.channel_id == channel), None)
        if not cases:
            return Cancel("nothing is left to merge")
        ready = [] if target is None else [(case, words) for case in cases[:MAX_MERGED] if (words := self._words(case))]
        if target is None or not ready:
            return self._alone(job, cases, "its channel is no longer usable")
        return await self._send(job, target, ready, cases)

    def _words(self, case: Case) -> Words | None:
        try:
            values = variables_of(case.run, case.step, {}, self._acknowledge_url)
            return self._renderer.words(case.step, values, case.run.language)
        except Unreadable:
            return None  # on its own it fails by itself

    async def _send(
        self, job: Job, target: StepTarget, ready: Sequence[tuple[Case, Words]], cases: Sequence[Case]
    ) -> Outcome:
        limits, retries = self._limits(target.channel_type), max(job.attempt - 1 - job.crashes, 0)
        metadata = {"merged": len(ready), "action_plan_ids": sorted({case.run.plan_id for case, _ in ready})}
        words = merge([words for _, words in ready])
        held = None if retries else await self._brakes.count(target, words.body, passes=False)
        if held is not None:
            return self._alone(job, cases, held)  # where each is held
        answer = await self._delivery.hand_over(job, target, words, metadata, limits)
        if isinstance(answer, StepFailure):
            if answer.retryable and retries < limits.retries:
                raise as_error(answer, delay_seconds(retries, answer.retry_after_seconds))
            return self._alone(job, cases, f"the merged message failed with {answer.code}")
        sent = [self._sent(job, case, target, answer, len(ready)) for case, _ in ready]
        done = {(end.run, end.step_order) for end in sent}
        rest = [case for case in cases if (case.run.id, case.step.step_order) not in done]
        return Done(then=(self._ends.end_many, [*sent, *(_hop(job, case, "on its own") for case in rest)]))

    def _sent(self, job: Job, case: Case, target: StepTarget, name: str, number: int) -> StepEnd:
        why = f"merged with {number - 1} others after quiet hours" if number > 1 else "sent after quiet hours"
        run, order = case.run.id, case.step.step_order
        return StepEnd(run, order, job.id, "sent", why, target=target, provider_message_id=name)

    def _alone(self, job: Job, cases: Sequence[Case], why: str) -> Done:
        return Done(then=(self._ends.end_many, [_hop(job, case, f"{why}; each on its own") for case in cases]))


def _hop(job: Job, case: Case, why: str) -> StepEnd:
    return StepEnd(case.run.id, case.step.step_order, job.id, "hop", why, onto=case.target)
