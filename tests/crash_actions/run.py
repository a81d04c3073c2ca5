"""One run: servers under a killer, brokers that restart, providers on a bad day, a rule service; then the count."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import aiohttp

from tests.buses.mock_cluster import MockCluster
from tests.crash_actions.askers import TOPIC, Asker
from tests.crash_actions.providers import NONE, Faults, Providers, providers
from tests.crash_http.fleet import Fleet

RATE = 40.0
PATIENCE_SECONDS = 600.0
TRIES = 60
DARK_SECONDS = 4.0
MIN_SUCCESS, MAX_DEAD, MIN_STEPS = 0.995, 0.003, 3000  # the shares of fewer steps say little
# Each step has somebody to fall back on, as a plan for a bad day would.
STEPS = [
    {"step_order": 1, "channel_type": "push", "body": "{{ n }}/1"},
    {"step_order": 2, "channel_type": "sms", "body": "{{ n }}/2"},
    {"step_order": 3, "channel_type": "webhook", "body": "{{ n }}/3"},
]
REACHED = {"sent", "delivered"}


@dataclass
class Report:
    """What a run cost. `lost`, `untold` and `unmarked` must be empty, and the books must balance."""

    kills: Counter[str] = field(default_factory=Counter)
    broker_restarts: int = 0
    dark_spells: int = 0
    asked: int = 0
    repeats: int = 0
    steps: int = 0
    reached: int = 0
    dead_letters: int = 0
    second_sends: int = 0
    lost: list[str] = field(default_factory=list)
    untold: list[str] = field(default_factory=list)
    unmarked: list[str] = field(default_factory=list)
    difference: int | None = None
    seconds: float = 0.0

    @property
    def success(self) -> float:
        return self.reached / self.steps if self.steps else 0.0

    @property
    def dead_share(self) -> float:
        return self.dead_letters / self.steps if self.steps else 1.0

    @property
    def is_clean(self) -> bool:
        met = self.steps < MIN_STEPS or (self.success >= MIN_SUCCESS and self.dead_share <= MAX_DEAD)
        return met and not (self.lost or self.untold or self.unmarked or self.difference)


class PlansRun:
    """Providers answer as they should, and requests come over HTTP."""

    faults: ClassVar[Faults] = NONE
    kafka: ClassVar[bool] = False

    def __init__(self, store: str, folder: Path, seed: int) -> None:
        self._store, self._folder, self._seed = store, folder, seed
        self._chance = random.Random(seed)
        self.report = Report()

    async def go(self, kills: int, tell: Callable[[int], None] = lambda _: None) -> Report:
        began = time.perf_counter()
        with contextlib.ExitStack() as stack:
            self._cluster = stack.enter_context(contextlib.closing(MockCluster())) if self.kafka else None
            async with providers(self.faults, self._seed) as made, aiohttp.ClientSession() as self._session:
                self._fleet = Fleet(self._store, self._folder, self._seed, {**made.settings, **self._bus()})
                stack.callback(self._fleet.close)
                await self._live(kills, made, tell)
        self.report.kills = dict(self._fleet.kills)
        self.report.seconds = round(time.perf_counter() - began, 1)
        return self.report

    def _bus(self) -> dict[str, str]:
        if self._cluster is None:
            return {}
        self._cluster.tell(f"topic {TOPIC} 4")
        return {"bus.kind": "kafka", "bus.kafka.servers": ",".join(self._cluster.servers)}

    async def _live(self, kills: int, made: Providers, tell: Callable[[int], None]) -> None:
        self._fleet.start()
        await self._fleet.answering()
        servers = self._cluster.servers if self._cluster else []
        plan = await self._plan(made.receiver.url)
        asker = Asker(self._fleet.address, servers, random.Random(self._seed), plan)
        asking = asyncio.create_task(asker.run(RATE))
        for number in range(kills):
            await self._fleet.kill(1, lambda _: None)
            await self._disturb(number, made)
            tell(number + 1)
        asker.stopping = True
        await asking
        await self._count(asker, made)

    # The world

    async def _plan(self, hook: str) -> int:
        """Everybody has all channels; a step's second route leads to somebody who is reached by webhook."""
        made = await self._ask("POST", "/plans", {"name": "Bad day", "steps": STEPS})
        for priority, targets in enumerate(([("push", "t1"), ("sms", "+905550000001")], [("webhook", hook)])):
            profile = await self._ask("POST", "/profiles", {"name": f"On call {priority}", "priority": priority})
            for kind, target in targets:
                body = {"profile_id": profile["id"], "channel_type": kind, "target": target}
                await self._ask("POST", f"/channels/{(await self._ask('POST', '/channels', body))['id']}/trust")
            for step in STEPS:
                route = {"action_plan_id": made["id"], "step_order": step["step_order"]}
                override = {"channel_type": "webhook"} if priority else {}
                await self._ask("POST", "/routes", {**route, "recipient_profile_id": profile["id"], **override})
        return int(made["id"])

    async def _ask(self, method: str, path: str, body: Any = None) -> Any:
        for _ in range(TRIES):
            async with self._session.request(method, f"{self._fleet.address}/api/actions{path}", json=body) as answer:
                if answer.status != 503 or method != "GET":
                    assert answer.status < 300, await answer.text()
                    return await answer.json()
            await asyncio.sleep(1)  # on a busy machine a read takes longer than it may
        raise AssertionError(f"GET {path} was answered 503 {TRIES} times")

    # What goes wrong besides

    async def _disturb(self, number: int, made: Providers) -> None:
        if number % 4 == 0 and self.faults != NONE:
            await self._go_dark(made, self._chance.choice(["push", "sms"]))
        if number % 4 == 2 and self._cluster is not None:
            await self._restart_brokers(self._cluster)

    async def _go_dark(self, made: Providers, provider: str) -> None:
        made.mood.dark = provider
        self.report.dark_spells += 1
        await asyncio.sleep(DARK_SECONDS)
        made.mood.dark = None

    async def _restart_brokers(self, cluster: MockCluster) -> None:
        await asyncio.to_thread(cluster.down)
        await asyncio.sleep(1)
        await asyncio.to_thread(cluster.up)
        self.report.broker_restarts += 1

    # The count

    async def _count(self, asker: Asker, made: Providers) -> None:
        report = self.report
        report.asked, report.repeats = len(asker.asked), asker.repeats
        runs = await self._all_ended(asker.asked)
        report.lost = sorted(asker.asked - runs.keys())
        report.difference = (await self._ask("GET", "/watchdog"))["difference"]
        for key, run in runs.items():
            for step in run["steps"]:
                await self._judge(key, run, step, made)
        await self._check_events(runs)

    async def _judge(self, key: str, run: dict[str, Any], step: dict[str, Any], made: Providers) -> None:
        report, text = self.report, f"{key.partition('-')[2]}/{step['step_order']}"
        taken = {provider: made.mood.taken[provider, text] for provider in ("push", "sms", "webhook")}
        reached = step["state"] in REACHED
        report.steps += 1
        report.reached += reached
        report.dead_letters += step["state"] in ("failed", "held")
        if reached and not taken[step["channel_type"]]:
            report.lost.append(text)
        second = sum(number - 1 for number in taken.values() if number > 1)
        if second:
            report.second_sends += second
            told = (await self._ask("GET", f"/runs/{run['run_id']}/explain"))["decisions"]
            marks = sum(one["decision"] == "uncertain" and one["step_order"] == step["step_order"] for one in told)
            if marks < second:
                report.unmarked.append(text)

    async def _all_ended(self, asked: set[str]) -> dict[str, dict[str, Any]]:
        with self._fleet.or_tell(PATIENCE_SECONDS) as limit:
            async with limit:
                while True:
                    runs = await self._runs()
                    if asked <= runs.keys() and all(run["ended_at"] for run in runs.values()):
                        return runs
                    await asyncio.sleep(1)

    async def _runs(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        after = ""
        while True:
            page = await self._ask("GET", f"/runs?limit=1000{after}")
            found |= {run["evaluation_key"]: run for run in page["items"]}
            if page["next"] is None:
                return found
            after = f"&after={page['next']}"

    async def _check_events(self, runs: dict[str, dict[str, Any]]) -> None:
        """One executed or failed event per step, however often its process died."""
        told: Counter[tuple[str, int]] = Counter()
        for topic in ("cinga.action.executed", "cinga.action.failed"):
            after = 0
            while (page := await self._ask("GET", f"/messages?topic={topic}&after={after}&limit=1000"))["messages"]:
                told.update(
                    (one["value"]["meta"]["trace_id"], one["value"]["data"]["step_order"]) for one in page["messages"]
                )
                after = page["after"]
        wanted = {(key, step["step_order"]) for key, run in runs.items() for step in run["steps"]}
        self.report.untold = [f"{key}/{order}" for key, order in sorted(wanted) if told[key, order] != 1]


class BadDayRun(PlansRun):
    """Providers fail, hang, throttle and go dark; half of the requests come over Kafka, whose brokers restart."""

    faults = Faults()
    kafka = True
