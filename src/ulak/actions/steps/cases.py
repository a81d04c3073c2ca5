"""Everything that a step's job needs to know, read for all jobs that start together in a few statements."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ulak.actions import decide
from ulak.actions.decide import Resolution
from ulak.actions.directory.resolution import Ask, find_targets
from ulak.actions.model import ActionRun, ActionStep, PlanStep, StepTarget
from ulak.actions.plans.book import PlanBook
from ulak.actions.records import read_runs, read_steps, read_targets, tried_by
from ulak.spine.store import Store, Tx

MAX_TOGETHER = 500


class Wanted(NamedTuple):
    """A step, the channel that it was given, and whether to look whom else it could go to."""

    run: int
    step_order: int
    channel: int | None
    again: bool = False


class Case(NamedTuple):
    """A step as its job finds it. `target` is None when nobody is left for it; `resolution` says why."""

    run: ActionRun
    step: PlanStep
    row: ActionStep
    target: StepTarget | None
    resolution: Resolution


class Cases:
    """Reads for all who ask while a read is under way, at once."""

    def __init__(self, open_store: Callable[[], Store], book: PlanBook) -> None:
        self._store = open_store
        self._book = book
        self._waiting: list[tuple[Wanted, asyncio.Future[Case | None]]] = []
        self._reading: asyncio.Task[None] | None = None

    async def get(self, wanted: Wanted) -> Case | None:
        """None when the run is no longer there."""
        answer: asyncio.Future[Case | None] = asyncio.get_running_loop().create_future()
        self._waiting.append((wanted, answer))
        if self._reading is None:
            self._reading = asyncio.create_task(self._read(), name="ulak-actions-cases")
        return await answer

    async def _read(self) -> None:
        try:
            while self._waiting:
                taken, self._waiting = self._waiting[:MAX_TOGETHER], self._waiting[MAX_TOGETHER:]
                await self._read_some(taken)
        finally:
            self._reading = None

    async def _read_some(self, taken: Sequence[tuple[Wanted, asyncio.Future[Case | None]]]) -> None:
        try:
            found = await self._store().read(load_cases, [wanted for wanted, _ in taken], self._book)
        except BaseException as error:
            for _, answer in taken:
                if not answer.done():
                    answer.set_exception(error if isinstance(error, Exception) else asyncio.CancelledError())
            if not isinstance(error, Exception):
                raise
            return
        for (_, answer), case in zip(taken, found, strict=True):
            if not answer.done():
                answer.set_result(case)


def load_cases(tx: Tx, wanted: list[Wanted], book: PlanBook) -> list[Case | None]:
    runs, steps = read_runs(tx, (one.run for one in wanted)), read_steps(tx, (one.run for one in wanted))
    targets = read_targets(tx, [one.channel for one in wanted if one.channel is not None and not one.again])
    plans = {place: _step_of(tx, one, runs, steps, book) for place, one in enumerate(wanted)}
    asks = {
        place: Ask(found[0].plan_id, found[1].step_order, found[1].channel_type, found[0].device_id)
        for place, found in plans.items()
        if found is not None and not _is_usable(targets, wanted[place])
    }
    resolved = find_targets(tx, asks.values()) if asks else {}
    cases: list[Case | None] = []
    for place, one in enumerate(wanted):
        found = plans[place]
        if found is None:
            cases.append(None)
            continue
        run, step, row = found
        if place not in asks:
            cases.append(Case(run, step, row, targets[one.channel or 0], Resolution()))
            continue
        profiles, options = resolved.get(asks[place], (0, []))
        here = {row.channel_id} if one.again and row.channel_id is not None else set()
        resolution = decide.resolve(step, profiles, options, tried_by(row) | here)
        cases.append(Case(run, step, row, next(iter(resolution.targets), None), resolution))
    return cases


def _is_usable(targets: dict[int, StepTarget], wanted: Wanted) -> bool:
    found = None if wanted.channel is None or wanted.again else targets.get(wanted.channel)
    return found is not None and found.usable


def _step_of(
    tx: Tx, wanted: Wanted, runs: dict[int, ActionRun], steps: dict[int, dict[int, ActionStep]], book: PlanBook
) -> tuple[ActionRun, PlanStep, ActionStep] | None:
    run = runs.get(wanted.run)
    row = None if run is None else steps.get(wanted.run, {}).get(wanted.step_order)
    if run is None or row is None:
        return None
    step = book.version(tx, run.plan_id, run.plan_version).step(wanted.step_order)
    return None if step is None else (run, step, row)
