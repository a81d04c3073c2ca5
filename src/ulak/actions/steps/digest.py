"""Quiet hours defer and merge: what was put off for one channel to one instant goes out as one message."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from ulak.actions.brakes import Brakes
from ulak.actions.decide import Limits, StepFailure, delay_seconds
from ulak.actions.model import ActionStep, StepTarget
from ulak.actions.plans.render import Renderer, Unreadable, Words
from ulak.actions.steps.cases import Case, Cases, Wanted
from ulak.actions.steps.delivery import Delivery
from ulak.actions.steps.ends import DigestEnd, StepEnd, StepEnds
from ulak.actions.steps.failures import as_error, done_after
from ulak.actions.steps.variables import variables_of
from ulak.clock import Clock
from ulak.spine.job import Job
from ulak.spine.outcome import Cancel, Done, Outcome
from ulak.spine.query import Queries
from ulak.spine.store import Store, Tx

sql = Queries("ulak.actions")

MAX_MERGED = 50  # in one message; the next one has the rest


def find_members(tx: Tx, channel: int, until: int, job: int) -> list[ActionStep]:
    rows = tx.rows(sql.find_deferred, channel=channel, until=until, job=job, n=MAX_MERGED)
    return [ActionStep(*row) for row in rows]


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
        clock: Clock,
    ) -> None:
        self._store = open_store
        self._cases = cases
        self._ends = ends
        self._renderer = renderer
        self._delivery = delivery
        self._brakes = brakes
        self._limits = limits
        self._acknowledge_url = acknowledge_url
        self._clock = clock

    async def run(self, job: Job) -> Outcome:
        channel, until = job.payload["digest"], job.payload["until"]
        rows = await self._store().read(find_members, channel, until, job.id)
        found = await asyncio.gather(*(self._cases.get(Wanted(row.run, row.step_order, channel)) for row in rows))
        cases = [case for case in found if case is not None]
        if not cases:
            return Cancel("nothing is left to merge")
        target = next((case.target for case in cases if case.target and case.target.channel_id == channel), None)
        ready = [] if target is None else [(case, words) for case in cases if (words := self._words(case))]
        if target is None or not ready:
            return self._alone(job, target, cases, "its channel is no longer usable")
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
            return self._alone(job, target, cases, held)  # where each is held
        began = self._clock.monotonic()
        answer = await self._delivery.hand_over(job, target, words, metadata, limits)
        if isinstance(answer, StepFailure):
            if answer.retryable and retries < limits.retries:
                raise as_error(answer, delay_seconds(retries, answer.retry_after_seconds))
            return self._alone(job, target, cases, f"the merged message failed with {answer.code}", answer)
        why = f"merged with {len(ready) - 1} others after quiet hours" if len(ready) > 1 else "sent after quiet hours"
        millis = round((self._clock.monotonic() - began) * 1000)
        numbers: dict[str, Any] = {"retry_count": retries, "process_ms": millis, "provider_message_id": answer}
        sent = [StepEnd(*_place(case), job.id, "sent", why, target=target, **numbers) for case, _ in ready]
        done = {(end.run, end.step_order) for end in sent}
        rest = [_hop(job, case, "on its own") for case in cases if _place(case) not in done]
        return Done(then=(self._ends.end_digests, DigestEnd(job, target, [*sent, *rest])))

    def _alone(
        self,
        job: Job,
        target: StepTarget | None,
        cases: Sequence[Case],
        why: str,
        failure: StepFailure | None = None,
    ) -> Done:
        """Each goes by itself; an address that is gone is not tried again."""
        hops = [_hop(job, case, f"{why}; each on its own", target, failure) for case in cases]
        return done_after(failure, (self._ends.end_digests, DigestEnd(job, target, hops)))


def _hop(
    job: Job, case: Case, why: str, target: StepTarget | None = None, failure: StepFailure | None = None
) -> StepEnd:
    return StepEnd(*_place(case), job.id, "hop", why, target=target, onto=case.target, failure=failure)


def _place(case: Case) -> tuple[int, int]:
    return case.run.id, case.step.step_order
