"""`ulak.actions.plans`: make plans and new versions of them, read, import, export and rehearse them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from ulak import faults
from ulak.actions.audited import PYTHON, audited
from ulak.actions.model import ActionPlan
from ulak.actions.plans import book, document
from ulak.actions.plans.book import PlanBook, PlanHead
from ulak.actions.plans.document import PlanForm, Texts, document_of, from_yaml, parse_plan, to_yaml
from ulak.actions.plans.rehearsal import Rehearsal
from ulak.actions.plans.render import Renderer, check_condition, check_text
from ulak.actions.wire.request import MAX_LIMIT, check_limit
from ulak.clock import given_millis
from ulak.settings.actions import Actions as ActionsSection
from ulak.spine.room import Host
from ulak.spine.store import Tx

END_MILLIS = 32_503_680_000_000  # the year 3000; the longest plan takes a century
Planned = tuple[PlanHead, ActionPlan]


class Plans:
    """The verbs of plans. The person who acts is given as `who`, for the audit chain."""

    def __init__(self, host: Host, section: ActionsSection, known: PlanBook, renderer: Renderer) -> None:
        self._host = host
        self._texts = Texts(check_text, check_condition, renderer.check_template)
        self._rehearsal = Rehearsal(section, known, renderer)

    async def create(self, plan: dict[str, Any], *, who: str = PYTHON) -> Planned:
        form = parse_plan(plan, self._texts)
        return await self._host.store.write(audited(book.create_plan, "actions.plan.created", who), form)

    async def put(self, identifier: int, plan: dict[str, Any], *, who: str = PYTHON) -> tuple[bool, Planned]:
        """A new version, or a plan with an id of yours; whether it is new."""
        form = parse_plan(plan, self._texts)
        return await self._host.store.write(audited(book.put_plan, "actions.plan.put", who), identifier, form)

    async def amend(self, identifier: int, changes: Any, *, who: str = PYTHON) -> Planned:
        """A plan's name or weight; with steps, a new version."""
        if not isinstance(changes, dict):
            raise faults.refusal(document.WHAT, [("", "must be a JSON object")])
        _, known = await self.get(identifier)
        whole = {name: value for name, value in document_of(known).items() if name != "id"} | changes
        form = parse_plan(whole, self._texts)
        if "steps" in changes:
            return (await self.put(identifier, whole, who=who))[1]
        amend = audited(book.amend_plan, "actions.plan.amended", who)
        return await self._host.store.write(amend, identifier, form.name, form.critical)

    async def get(self, identifier: int, version: int | None = None) -> Planned:
        return await self._host.store.read(book.read_plan, identifier, version)

    async def list(self, *, after: int = 0, limit: int = 50) -> list[Planned]:
        return await self._host.store.read(book.list_plans, after, check_limit(limit))

    async def delete(self, identifier: int, *, who: str = PYTHON) -> None:
        """No more requests for it; runs that have begun go on."""
        await self._host.store.write(audited(book.delete_plan, "actions.plan.deleted", who), identifier)

    async def import_yaml(self, text: str, *, who: str = PYTHON) -> Sequence[Planned]:
        """All plans of a file, or none: an error names its line."""
        forms = from_yaml(text, self._texts)
        return await self._host.store.write(audited(_import, "actions.plans.imported", who), forms)

    async def export_yaml(self) -> str:
        found: list[ActionPlan] = []
        while page := await self.list(after=found[-1].id if found else 0, limit=MAX_LIMIT):
            found += [plan for _, plan in page]
        return to_yaml(found)

    async def simulate(
        self,
        action_plan_id: int,
        variables: dict[str, Any] | None = None,
        *,
        device_id: str | None = None,
        at: datetime | None = None,
    ) -> Sequence[dict[str, Any]]:
        """The plan's timeline on a virtual clock; nothing is sent."""
        store = self._host.store
        start = store.clock.now() if at is None else given_millis("at", at)
        if not 0 <= start < END_MILLIS:
            raise faults.refusal("the simulation", [("at", "must be from 1970 to 2999")])
        return await store.read(self._rehearsal.run, action_plan_id, variables or {}, device_id, start)


def _import(tx: Tx, forms: Sequence[tuple[int | None, PlanForm]]) -> list[Planned]:
    return [book.create_plan(tx, form) if plan is None else book.put_plan(tx, plan, form)[1] for plan, form in forms]
