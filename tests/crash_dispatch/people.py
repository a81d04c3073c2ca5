"""People who open tasks and answer offers over HTTP without a pause, and say everything again until it is answered."""

from __future__ import annotations

import asyncio
import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

import aiohttp

PAUSE_SECONDS = 0.02
TIMEOUT = aiohttp.ClientTimeout(total=10)
HELPERS = 60
HERE = {"latitude": 41.0, "longitude": 29.0}
LONG_SECONDS = 3600  # such an offer outlives the run, so its message has to arrive
HTTP_FAILED = 500


@dataclass
class People:
    address: str
    hook: str
    seed: int
    said: Counter[str] = field(default_factory=Counter)
    opened: set[str] = field(default_factory=set)
    by_key: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    holders: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    given_back: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    stopping: bool = False

    async def run(self, number: int) -> None:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(self.address, connector=connector, timeout=TIMEOUT) as session:
            await asyncio.gather(*(self._person(session, one) for one in range(number)))

    async def settle_in(self) -> None:
        """Helpers that are told by webhook, eleven metres apart."""
        contact = {"notificationType": "WEBHOOK", "recipient": self.hook}
        async with aiohttp.ClientSession(self.address, timeout=TIMEOUT) as session:
            for number in range(HELPERS):
                place = {"latitude": 41.0 + number * 1e-4, "longitude": 29.0}
                status, _ = await self._ask(session, "PUT", f"/helpers/h{number}", {**place, "contact": contact})
                assert status == 200

    async def end_all(self) -> None:
        """Complete and cancel whatever is unfinished, so that everything comes to an end."""
        async with aiohttp.ClientSession(self.address, timeout=TIMEOUT) as session:
            for state in ("SEARCHING", "OFFERED", "ASSIGNED"):
                while items := (await self._ask(session, "GET", f"/tasks?status={state}&limit=500"))[1]["items"]:
                    for task in items:
                        await self._ask(session, "PUT", f"/tasks/{task['id']}/cancel", {})

    async def _person(self, session: aiohttp.ClientSession, person: int) -> None:
        chance = random.Random(self.seed * 1000 + person)
        number = 0
        while not self.stopping:
            number += 1
            task = await self._open(session, f"{person}-{number}", chance)
            if task is not None:
                await self._answer_all(session, task, chance)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _open(self, session: aiohttp.ClientSession, key: str, chance: random.Random) -> dict[str, Any] | None:
        body = {
            "requesterId": "r", "category": "c", **HERE, "width": chance.choice([1, 2, 3]),
            "deadlineSeconds": chance.choice([1, LONG_SECONDS]),
            "contact": {"notificationType": "WEBHOOK", "recipient": self.hook},
        }  # fmt: skip
        status, task = await self._ask(session, "POST", "/tasks", body, {"Idempotency-Key": key})
        if status != 201:
            return None
        self.opened.add(task["id"])
        self.by_key[key].add(task["id"])
        return dict(task)

    async def _answer_all(self, session: aiohttp.ClientSession, task: dict[str, Any], chance: random.Random) -> None:
        """Everybody who was asked answers at once, or is silent; whoever has the task then ends it or gives it back."""
        asked = [one["helperId"] for one in task["pendingAssignments"]]
        verbs = [(helper, chance.choice(["accept", "accept", "reject", ""])) for helper in asked]
        await asyncio.gather(*(self._say(session, task["id"], verb, helper) for helper, verb in verbs if verb))
        for holder in sorted(self.holders[task["id"]]):
            await self._say(session, task["id"], chance.choice(["complete", "complete", "release"]), holder)
        if chance.random() < 0.2:
            await self._ask(session, "PUT", f"/tasks/{task['id']}/cancel", {})

    async def _say(self, session: aiohttp.ClientSession, task: str, verb: str, helper: str) -> None:
        status, answer = await self._ask(session, "PUT", f"/tasks/{task}/{verb}", {"helperId": helper})
        if status == 200 and verb == "accept":
            self.holders[task].add(helper)
        elif status == 200 and verb == "release":
            self.given_back[task].add(helper)
        self.said[f"{verb} {answer.get('code', '') or status}"] += 1

    async def _ask(
        self, session: aiohttp.ClientSession, method: str, path: str, body: Any = None, headers: Any = None
    ) -> tuple[int, Any]:
        """Again and again until somebody answers: an answer that is said twice is said once."""
        while True:
            try:
                async with session.request(method, path, json=body, headers=headers) as answer:
                    document = await answer.json()
                    if answer.status < HTTP_FAILED:
                        return answer.status, document
                    self.said[str(answer.status)] += 1
            except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
                self.said["unanswered"] += 1
            await asyncio.sleep(PAUSE_SECONDS)
