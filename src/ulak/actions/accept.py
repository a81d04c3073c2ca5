"""Accepting requests: a run, its first step and that step's job in one commit, for as many callers as wait."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from ulak.actions.model import ActionPlan, ActionRun
from ulak.actions.plans.book import PlanBook
from ulak.actions.prune import oldest, remove_runs
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


def accept_verb(book: PlanBook, starter: Starter, keep_millis: int) -> Verb[ActionRun, AcceptVerdict]:
    return Verb(WriterQueue.ENQUEUE, lambda tx, runs: accept(tx, runs, book, starter, keep_millis))


def accept(tx: Tx, asked: list[ActionRun], book: PlanBook, starter: Starter, keep_millis: int) -> list[AcceptVerdict]:
    keys = sorted({run.evaluation_key for run in asked})
    tx.lock_keys([f"evaluation:{key}" for key in keys])
    known = _known(tx, keys, keep_millis)
    plans = book.newest(tx, (run.plan_id for run in asked if run.evaluation_key not in known))
    fresh: list[ActionRun] = []
    verdicts = [_verdict(run, known, plans, fresh, tx.now) for run in asked]
    if fresh:
        insert_runs(tx, fresh)
        save_steps(tx, starter.start(tx, [Start(run, plans[run.plan_id].first()) for run in fresh]))
    return verdicts


def _known(tx: Tx, keys: list[str], keep_millis: int) -> dict[str, tuple[int, int, str]]:
    """The run of each evaluation that was asked for within its days; an older one makes way for the new one."""
    rows = tx.rows(sql.find_evaluations, keys=keys)
    before = oldest(tx, keep_millis)
    old = [run for _, run, _, _, ended_at in rows if run < before and ended_at is not None]
    remove_runs(tx, old)
    return {key: (run, plan, trace_id) for key, run, plan, trace_id, _ in rows if run not in old}


def find_first(tx: Tx, run: ActionRun, keep_millis: int) -> AcceptVerdict | None:
    """The verdict on a repeat, without a place for anything new; None when it is not a repeat."""
    for _, first, plan, trace_id, ended_at in tx.rows(sql.find_evaluations, keys=[run.evaluation_key]):
        if first >= oldest(tx, keep_millis) or ended_at is None:
            return Accepted(first, trace_id, duplicate=True) if plan == run.plan_id else OtherPlan(plan)
    return None


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
