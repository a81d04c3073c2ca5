"""One run: tasks are opened and answered while processes die; then every timeline is held against the sink."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.crash_dispatch.people import LONG_SECONDS, People
from tests.crash_http.fleet import Fleet
from tests.crash_http.sink import Sink
from tests.dispatch.audit import faults
from ulak import Ulak
from ulak.settings import Settings

PEOPLE = 8
SETTINGS = {"dispatch.pause_after_timeouts": "1000"}


@dataclass
class DispatchReport:
    """What a run cost. All lists must be empty: nothing lost, nobody wrongly told, no table at odds with itself."""

    kills: dict[str, int] = field(default_factory=dict)
    said: dict[str, int] = field(default_factory=dict)
    tasks: int = 0
    offers: int = 0
    messages: int = 0
    repeated_messages: int = 0
    lost_tasks: list[str] = field(default_factory=list)
    keys_with_two: list[str] = field(default_factory=list)
    held_by_two: list[str] = field(default_factory=list)
    lost_messages: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    faults: list[Any] = field(default_factory=list)
    difference: float | None = None
    seconds: float = 0.0

    @property
    def is_clean(self) -> bool:
        wrong = (
            self.lost_tasks,
            self.keys_with_two,
            self.held_by_two,
            self.lost_messages,
            self.unfinished,
            self.faults,
        )
        return not any(wrong) and not self.difference


class DispatchRun:
    def __init__(self, store: str, folder: Path, seed: int) -> None:
        self._store = store
        self._seed = seed
        self._fleet = Fleet(store, folder, seed, SETTINGS)
        self._sink = Sink(seed, _name_of)
        self.report = DispatchReport()

    async def go(self, kills: int, tell: Callable[[int], None] = lambda _: None) -> DispatchReport:
        began = time.perf_counter()
        await self._sink.open()
        try:
            self._fleet.start()
            await self._fleet.answering()
            people = People(self._fleet.address, f"http://127.0.0.1:{self._sink.port}/hook", self._seed)
            await people.settle_in()
            living = asyncio.create_task(people.run(PEOPLE))
            await self._fleet.kill(kills, tell)
            people.stopping = True
            await living
            await people.end_all()
            await self._count(people)
        finally:
            self._fleet.close()
            await self._sink.close()
        self.report.faults = await _audit(self._store)
        self.report.seconds = round(time.perf_counter() - began, 1)
        return self.report

    async def _count(self, people: People) -> None:
        report, arrivals = self.report, self._sink.arrivals
        report.difference = await self._fleet.all_told()
        report.kills, report.said = dict(self._fleet.kills), dict(sorted(people.said.items()))
        report.keys_with_two = sorted(key for key, tasks in people.by_key.items() if len(tasks) > 1)
        kept = set()
        async for task in self._tasks():
            kept.add(task["id"])
            report.offers += sum(step["what"] == "offered" for step in task["timeline"])
            report.lost_messages += [name for name in _expected(task) if name not in arrivals]
            if task["status"] not in {"COMPLETED", "CANCELLED", "TIMED_OUT"}:
                report.unfinished.append(task["id"])
        report.tasks = len(kept)
        report.lost_tasks = sorted(people.opened - kept)
        report.held_by_two = [task for task, who in people.holders.items() if len(who - people.given_back[task]) > 1]
        report.messages, report.repeated_messages = len(arrivals), arrivals.total() - len(arrivals)

    async def _tasks(self) -> AsyncIterator[dict[str, Any]]:
        """Every task with its timeline, whether or not anybody saw its 201."""
        after = ""
        while after is not None:
            _, page = await self._fleet.get(f"/tasks?limit=500{after and f'&after={after}'}")
            for item in page["items"]:
                yield (await self._fleet.get(f"/tasks/{item['id']}"))[1]
            after = page["next"]


def _name_of(message: dict[str, Any]) -> str:
    """What a message is about: its occasion, and the offer or the task."""
    about = message["metadata"]
    match about["occasion"]:
        case "assigned":
            return f"assigned {about['taskId']} {about['helperId']}"
        case "taken" | "cancelled" if "offerId" in about:
            return f"withdrawn {about['offerId']}"
        case occasion:
            return f"{occasion} {about.get('offerId') or about['taskId']}"


def _expected(task: dict[str, Any]) -> Iterator[str]:
    """Messages that the timeline owes: an offer that stood for a second only may have ended before it was sent."""
    for step in task["timeline"]:
        if step["what"] == "offered" and task["deadlineSeconds"] == LONG_SECONDS:
            yield f"offer {step['offerId']}"
        elif step["what"] == "withdrawn":
            yield f"withdrawn {step['offerId']}"
        elif step["what"] == "accepted":
            yield f"assigned {task['id']} {step['helperId']}"
        elif step["what"] == "timed_out":
            yield f"nobody {task['id']}"


async def _audit(address: str) -> list[Any]:
    settings = Settings(store=address, log={"level": "error"})
    async with Ulak(address, settings=settings, work=False) as ulak:
        return list(await ulak.store.read(faults))
