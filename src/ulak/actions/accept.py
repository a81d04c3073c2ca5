"""Accepting requests: a run, its first step and that step's job in one commit, for as many callers as wait."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from ulak.actions.model import ActionPlan, ActionRun
from ulak.actions.plans.book import PlanBook
from ulak.actions.records import insert_runs, save_steps
from ulak.actions.steps.starts import Start, Starter
from ulak.spine.query import Queries
from ulak.spine.store import Tx, Verb, WriterQueue

sql = Queries("ulak.actions")


@dataclass(frozen=True, slots=True)
class Accepted:
    run: int
    trace_id: str
    duplicate: bool


@dataclass(frozen=True, slots=True)
class OtherPlan:
    """The evaluation was asked for before, with another plan."""

    plan: int


@dataclass(frozen=True, slots=True)
class NoPlan:
    """There is no such plan."""


AcceptVerdict = Accepted | OtherPlan | NoPlan


def accept_verb(book: PlanBook, starter: Starter) -> Verb[ActionRun, AcceptVerdict]:
    return Verb(WriterQueue.ENQUEUE, lambda tx, runs: accept(tx, runs, book, starter))


def accept(tx: Tx, asked: list[ActionRun], book: PlanBook, starter: Starter) -> list[AcceptVerdict]:
    keys = sorted({run.evaluation_key for run in asked})
    tx.lock_keys([f"evaluation:{key}" for key in keys])
    known = {key: tuple(rest) for key, *rest in tx.rows(sql.find_evaluations, keys=keys)}
    plans = book.newest(tx, (run.plan_id for run in asked if run.evaluation_key not in known))
    fresh: list[ActionRun] = []
    verdicts = [_verdict(run, known, plans, fresh, tx.now) for run in asked]
    if fresh:
        insert_runs(tx, fresh)
        save_steps(tx, starter.start(tx, [Start(run, plans[run.plan_id].first()) for run in fresh]))
    return verdicts


def _verdict(
    run: ActionRun,
    known: dict[str, tuple[int, int, str]],
    plans: dict[int, ActionPlan],
    fresh: list[ActionRun],
    now: int,
) -> AcceptVerdict:
    first = known.get(run.evaluation_key)
    if first is not None:
        identifier, other, trace_id = first
        return Accepted(identifier, trace_id, duplicate=True) if other == run.plan_id else OtherPlan(other)
    plan = plans.get(run.plan_id)
    if plan is None:
        return NoPlan()
    made = msgspec.structs.replace(
        run, plan_version=plan.version, critical=run.critical or plan.critical, accepted_at=now
    )
    fresh.append(made)
    known[run.evaluation_key] = (run.id, run.plan_id, run.trace_id)
    return Accepted(run.id, run.trace_id, duplicate=False)
