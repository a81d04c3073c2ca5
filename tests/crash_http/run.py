"""One run: real processes under a killer, a client and a sink; then the count."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.crash_http.client import Client
from tests.crash_http.fleet import Fleet
from tests.crash_http.sink import Sink

POSTERS = 8


@dataclass
class Report:
    """What a run cost. `lost` and `unexplained` must be empty, and the books must balance."""

    kills: dict[str, int] = field(default_factory=dict)
    posts: int = 0
    unanswered: int = 0
    refused: int = 0
    accepted: int = 0
    delivered: int = 0
    duplicates: int = 0
    uncertain_attempts: int = 0
    lost: list[str] = field(default_factory=list)
    unexplained: list[str] = field(default_factory=list)
    keys_with_two: list[str] = field(default_factory=list)
    difference: float | None = None
    seconds: float = 0.0

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.unexplained or self.keys_with_two or self.difference)


class Run:
    def __init__(self, store: str, folder: Path, seed: int) -> None:
        self._fleet = Fleet(store, folder, seed)
        self._sink = Sink(seed)
        self.report = Report()

    async def go(self, kills: int, tell: Callable[[int], None] = lambda _: None) -> Report:
        began = time.perf_counter()
        await self._sink.open()
        try:
            self._fleet.start()
            client = Client(self._fleet.address, f"http://127.0.0.1:{self._sink.port}/hook")
            posting = asyncio.create_task(client.run(POSTERS))
            await self._fleet.kill(kills, tell)
            client.stopping = True
            await posting
            await self._count(client)
        finally:
            self._fleet.close()
            await self._sink.close()
        self.report.seconds = round(time.perf_counter() - began, 1)
        return self.report

    async def _count(self, client: Client) -> None:
        report, arrivals = self.report, self._sink.arrivals
        report.difference = await self._fleet.all_told()
        report.kills = dict(self._fleet.kills)
        report.posts, report.unanswered, report.refused = client.posts, client.unanswered, client.refused
        report.accepted = len(client.accepted)
        report.delivered = len(arrivals)
        report.duplicates = sum(arrivals.values()) - len(arrivals)
        report.lost = sorted(client.accepted - arrivals.keys())
        report.keys_with_two = sorted(key for key, ids in client.by_key.items() if len(ids) > 1)
        for identifier in [one for one, number in arrivals.items() if number > 1]:
            await self._explain(identifier, arrivals[identifier] - 1)

    async def _explain(self, identifier: str, repeats: int) -> None:
        _, view = await self._fleet.get(f"/api/notifications/{identifier}")
        self.report.uncertain_attempts += view["uncertainAttempts"]
        if view["uncertainAttempts"] < repeats:
            self.report.unexplained.append(identifier)
