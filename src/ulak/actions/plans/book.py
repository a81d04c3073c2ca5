"""Plans in the store: each change is a version of its own, which never changes and is remembered."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from ulak.actions.model import MAX_NUMBER, ActionPlan, PlanStep
from ulak.actions.plans.document import PlanForm, to_steps
from ulak.actions.records import next_number
from ulak.errors import NotFound
from ulak.spine.query import Queries
from ulak.spine.store import Tx

sql = Queries("ulak.actions")

MAX_REMEMBERED = 2000
COUNTER = "plan"
MAX_COUNTED = MAX_NUMBER // 2  # counting never gets beyond it, so that a larger id need not raise the count


class PlanHead(NamedTuple):
    """A plan without its steps."""

    id: int
    name: str
    critical: bool
    version: int
    created_at: int
    updated_at: int
    deleted_at: int | None


class PlanBook:
    """Versions that were read before: they can't change, so one that is remembered is right."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], ActionPlan] = {}

    def version(self, tx: Tx, plan: int, version: int) -> ActionPlan:
        """For running: a version's steps. Its name and weight are those of the run."""
        found = self._known.get((plan, version))
        if found is None:
            steps = tuple(PlanStep(*row) for row in tx.rows(sql.read_plan_steps, plan=plan, version=version))
            found = ActionPlan(plan, version, "", critical=False, steps=steps)
            if len(self._known) >= MAX_REMEMBERED:
                self._known.pop(next(iter(self._known)))
            self._known[plan, version] = found
        return found

    def newest(self, tx: Tx, plans: Iterable[int]) -> dict[int, ActionPlan]:
        """The newest version of each plan that there is."""
        rows = tx.rows(sql.find_plans, ids=sorted(set(plans)))
        return {
            plan: msgspec.structs.replace(self.version(tx, plan, version), critical=bool(critical))
            for plan, version, critical in rows
        }


def read_head(tx: Tx, plan: int) -> PlanHead | None:
    row = tx.row(sql.read_plan, id=plan)
    return None if row is None else PlanHead._make(row)._replace(critical=bool(row[2]))


def read_plan(tx: Tx, plan: int, version: int | None = None) -> tuple[PlanHead, ActionPlan]:
    head = read_head(tx, plan)
    if head is None or head.deleted_at is not None:
        raise NotFound(f"no action plan {plan:,}; it was never made, or is deleted")
    wanted = head.version if version is None else version
    steps = tuple(PlanStep(*row) for row in tx.rows(sql.read_plan_steps, plan=plan, version=wanted))
    if not steps:
        raise NotFound(f"action plan {plan:,} has no version {wanted}; its newest is {head.version}")
    return head, ActionPlan(plan, wanted, head.name, head.critical, steps)


def list_plans(tx: Tx, after: int, limit: int) -> list[tuple[PlanHead, ActionPlan]]:
    heads = [PlanHead._make(row) for row in tx.rows(sql.list_plans, after=after, n=limit)]
    return [read_plan(tx, head.id) for head in heads]


def create_plan(tx: Tx, form: PlanForm) -> tuple[PlanHead, ActionPlan]:
    return _keep(tx, next_number(tx, COUNTER), 1, form)


def put_plan(tx: Tx, plan: int, form: PlanForm) -> tuple[bool, tuple[PlanHead, ActionPlan]]:
    """A new version, or a plan under an id that the rule service has chosen; whether it is new. Routes stay."""
    tx.lock_keys([f"actions:plan:{plan}"])
    head = read_head(tx, plan)
    if head is None and plan <= MAX_COUNTED:
        tx.execute(sql.raise_number, name=COUNTER, value=plan)
    version = 1 if head is None else head.version + 1
    fresh = head is None or head.deleted_at is not None
    return fresh, _keep(tx, plan, version, form)


def amend_plan(tx: Tx, plan: int, name: str | None, critical: bool | None) -> tuple[PlanHead, ActionPlan]:
    """Change its name and weight, which are not part of a version."""
    head, _ = read_plan(tx, plan)
    name, critical = head.name if name is None else name, head.critical if critical is None else critical
    tx.execute(sql.update_plan, id=plan, name=name, critical=critical, now=tx.now)
    return read_plan(tx, plan)


def delete_plan(tx: Tx, plan: int) -> None:
    """No more requests for it. Its versions stay for the runs that have them."""
    if not tx.execute(sql.delete_plan, id=plan, now=tx.now):
        raise NotFound(f"no action plan {plan:,}; it was never made, or is deleted")
    tx.execute(sql.delete_routes_of_plan, plan=plan)


def _keep(tx: Tx, plan: int, version: int, form: PlanForm) -> tuple[PlanHead, ActionPlan]:
    tx.execute(sql.save_plan, id=plan, name=form.name, critical=form.critical, version=version, now=tx.now)
    for step in to_steps(form):
        tx.execute(sql.insert_plan_step, plan=plan, version=version, **msgspec.structs.asdict(step))
    return read_plan(tx, plan)
