"""One run: servers under a killer, brokers that restart, providers on a bad day, a rule service; then the count."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from tests.buses.mock_cluster import MockCluster
from tests.crash_actions.askers import TOPIC, Asker
from tests.crash_actions.providers import Faults, Providers, providers
from tests.crash_http.fleet import free_port
from tests.crash_http.nursery import Nursery, kill

RATE = 40.0
PATIENCE_SECONDS = 240.0
START_SECONDS = 60.0
DARK_SECONDS = 4.0
SETTINGS = {
    "spine.lease_seconds": "1",
    "spine.poison_deaths": "100",  # here the killer is to blame, never the job
    "log.level": "warning",
}
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

    kills: dict[str, int] = field(default_factory=dict)
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
        return not (self.lost or self.untold or self.unmarked or self.difference)


class Run:
    def __init__(self, store: str, folder: Path, seed: int, *, faults: Faults, kafka: bool) -> None:
        self._chance = random.Random(seed)
        self._seed = seed
        self._faults = faults
        self._log = folder / "ulak.log"
        self._port = free_port()
        self._store = store
        # On one file there is one process; a shared store has a worker beside the server, and either may die.
        self._roles = ["serve", "worker"] if store.startswith("postgresql") else ["serve"]
        self._alive: dict[str, int] = {}
        self._cluster = MockCluster() if kafka else None
        self._words: list[str] = []
        self.report = Report()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def go(self, kills: int, tell: Callable[[int], None] = lambda _: None) -> Report:
        began = time.perf_counter()
        self._nursery = Nursery(self._log)
        try:
            async with providers(self._faults, self._seed) as made, aiohttp.ClientSession() as self._session:
                self._words = [f"--set={name}={value}" for name, value in self._settings(made).items()]
                for role in self._roles:
                    self._start(role)
                await self._answering()
                servers = self._cluster.servers if self._cluster else []
                asker = Asker(self.address, servers, random.Random(self._seed), await self._plan(made.receiver.url))
                asking = asyncio.create_task(asker.run(RATE))
                await self._kill(kills, made, tell)
                asker.stopping = True
                await asking
                await self._count(asker, made)
        finally:
            for pid in self._alive.values():
                kill(pid)
            self._nursery.close()
            if self._cluster is not None:
                self._cluster.close()
        self.report.seconds = round(time.perf_counter() - began, 1)
        return self.report

    def _settings(self, made: Providers) -> dict[str, str]:
        settings = {**SETTINGS, **made.settings, "store": self._store, "http.port": str(self._port)}
        if self._cluster is not None:
            self._cluster.tell(f"topic {TOPIC} 4")
            settings |= {"bus.kind": "kafka", "bus.kafka.servers": ",".join(self._cluster.servers)}
        return settings

    def _start(self, role: str) -> None:
        self._alive[role] = self._nursery.start(role, *self._words)

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
        async with self._session.request(method, f"{self.address}/api/actions{path}", json=body) as answer:
            assert answer.status < 300, await answer.text()
            return await answer.json()

    # What goes wrong

    async def _kill(self, kills: int, made: Providers, tell: Callable[[int], None]) -> None:
        for number in range(kills):
            await self._answering()
            await asyncio.sleep(self._chance.random())
            role = self._chance.choice(self._roles)
            kill(self._alive[role])
            self.report.kills[role] = self.report.kills.get(role, 0) + 1
            self._start(role)
            if number % 4 == 1 and self._faults.refused:
                await self._go_dark(made, self._chance.choice(["push", "sms"]))
            if number % 4 == 3 and self._cluster is not None:
                await self._restart_brokers(self._cluster)
            tell(number + 1)
        await self._answering()

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

    async def _answering(self) -> None:
        """Wait until the server takes work; a kill before that would only test the start."""
        with self._or_tell(START_SECONDS) as limit:
            async with limit:
                while True:
                    with contextlib.suppress(aiohttp.ClientError, OSError):
                        async with self._session.get(f"{self.address}/healthz") as answer:
                            if answer.status == 200:
                                return
                    await asyncio.sleep(0.02)

    @contextlib.contextmanager
    def _or_tell(self, seconds: float) -> Iterator[asyncio.Timeout]:
        try:
            yield asyncio.timeout(seconds)
        except TimeoutError:
            told = self._log.read_text(errors="replace")[-3000:]
            raise AssertionError(f"no progress within {seconds} s; the log ends with: {told}") from None

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
        with self._or_tell(PATIENCE_SECONDS) as limit:
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
