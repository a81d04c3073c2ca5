"""A simulation with the directory as it is: reads what a run would meet, and walks the plan through it."""

from __future__ import annotations

from typing import Any

from ulak import faults
from ulak.actions import decide
from ulak.actions.brakes import brakes_of, read_spent
from ulak.actions.directory.resolution import Ask, find_targets
from ulak.actions.model import NOT_A_PLAN, UNADDRESSED, ActionPlan
from ulak.actions.plans.book import PlanBook
from ulak.actions.plans.render import Renderer
from ulak.actions.plans.simulate import Around, StepWords, simulate
from ulak.settings.actions import Actions as ActionsSection
from ulak.spine.store import Tx


class Rehearsal:
    def __init__(self, section: ActionsSection, book: PlanBook, renderer: Renderer) -> None:
        self._section = section
        self._book = book
        self._renderer = renderer

    def run(self, tx: Tx, plan_id: int, variables: dict[str, Any], device: str | None, at: int) -> list[dict[str, Any]]:
        plan = self._book.newest(tx, [plan_id]).get(plan_id)
        if plan is None:
            raise faults.refusal("the simulation", [("action_plan_id", NOT_A_PLAN)])
        values = {"acknowledge_url": "https://example.org/acknowledge", **variables}
        words = StepWords(
            lambda step: self._renderer.holds(step, values, None),
            lambda step: self._renderer.words(step, values, None).body,
        )
        return simulate(plan, at, words, self._around(tx, plan, device, at))

    def _around(self, tx: Tx, plan: ActionPlan, device: str | None, at: int) -> Around:
        asks = {step.step_order: Ask(plan.id, step.step_order, step.channel_type, device) for step in plan.steps}
        found = find_targets(tx, asks.values())
        resolutions = {
            step.step_order: decide.resolve(step, *found[asks[step.step_order]])
            for step in plan.steps
            if step.channel_type not in UNADDRESSED
        }
        channels = sorted({one.channel_id for each in resolutions.values() for one in each.targets})
        return Around(
            resolutions,
            plan.critical,
            self._section.quiet_hours or None,
            self._section.time_zone,
            brakes_of(self._section),
            read_spent(tx, channels, at),
        )
