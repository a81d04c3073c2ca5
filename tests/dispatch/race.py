"""Raced answers: processes accept, reject, release, cancel and let expire the same tasks; then the tables are audited.

`python -m tests.dispatch.race --answers 100000` runs four processes on PostgreSQL; `--http` four clients of one server
on SQLite.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, Self

import aiohttp

from tests.crash_http.fleet import Fleet
from tests.dispatch.audit import faults
from ulak import Ulak
from ulak.dispatch.model import TaskState
from ulak.errors import Error
from ulak.settings import Settings

HELPERS = 400
WIDTH = 5
VERBS = ("accept", "accept", "reject", "reject", "release", "complete", "cancel")
CALLERS = 25


def settings_of(address: str) -> Settings:
    return Settings(store=address, dispatch={"pause_after_timeouts": 1000}, log={"level": "error"})


class Library:
    """Answers through the Python API of a process of its own, which runs deadlines too."""

    def __init__(self, address: str) -> None:
        self._ulak = Ulak(address, settings=settings_of(address))

    async def __aenter__(self) -> Self:
        await self._ulak.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._ulak.close()

    async def open(self, **fields: Any) -> tuple[Any, list[str]]:
        try:
            view = await self._ulak.dispatch.open(fields)
        except Error:
            return None, []  # counted as refused
        return view.task.id, [one.helper for one in view.pending]

    async def answer(self, verb: str, task: Any, helper: str) -> str:
        room = self._ulak.dispatch
        try:
            await (room.cancel(task) if verb == "cancel" else getattr(room, verb)(task, helper))
        except Error as error:
            return getattr(error, "code", None) or type(error).__name__
        return "yes"


class Http:
    """Answers through a server."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(self._address, connector=aiohttp.TCPConnector(limit=CALLERS))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def open(self, **fields: Any) -> tuple[Any, list[str]]:
        async with self._session.post("/tasks", json=fields) as answer:
            made = await answer.json()
        if answer.status != 201:
            return None, []
        return made["id"], [one["helperId"] for one in made["pendingAssignments"]]

    async def answer(self, verb: str, task: Any, helper: str) -> str:
        body = {} if verb == "cancel" else {"helperId": helper}
        async with self._session.put(f"/tasks/{task}/{verb}", json=body) as answer:
            if answer.status == 200:
                return "yes"
            return (await answer.json()).get("code") or str(answer.status)


async def answer_many(client: Any, number: int, seed: int) -> Counter[str]:
    """Open tasks and race for them: each gets a dozen answers at once, some by people who were not asked."""
    chance, said = random.Random(seed), Counter[str]()

    async def caller() -> None:
        while said.total() < number:
            deadline = chance.choice([1, 1, 2, 6])
            task, asked = await client.open(
                requesterId="r", category="c", latitude=41.0, longitude=29.0, width=WIDTH, deadlineSeconds=deadline
            )
            if task is None:
                said["refused"] += 1
                continue
            people = [*asked, *(f"h{chance.randrange(HELPERS)}" for _ in range(3))]
            answers = [(chance.choice(VERBS), chance.choice(people)) for _ in range(12)]
            said.update(await asyncio.gather(*(client.answer(verb, task, who) for verb, who in answers)))
            said.update([await client.answer(chance.choice(["cancel", "complete"]), task, chance.choice(people))])

    async with client:
        await asyncio.gather(*(caller() for _ in range(CALLERS)))
    return said


def _process(kind: str, address: str, number: int, seed: int) -> Counter[str]:
    client = Library(address) if kind == "library" else Http(address)
    return asyncio.run(answer_many(client, number, seed))


def race(kind: str, address: str, answers: int, processes: int) -> Counter[str]:
    with ProcessPoolExecutor(processes) as pool:
        given = [(kind, address, answers // processes, seed) for seed in range(processes)]
        return sum(pool.map(_process, *zip(*given, strict=True)), Counter[str]())


async def prepare(address: str) -> None:
    async with Ulak(address, settings=settings_of(address), work=False) as ulak:
        for number in range(HELPERS):
            await ulak.dispatch.put_helper(f"h{number}", latitude=41 + number * 1e-5, longitude=29.0)


async def audit(address: str, patience_seconds: float = 60) -> list[Any]:
    """Let everything come to its end, then look at the tables."""
    ends_at = time.monotonic() + patience_seconds
    async with Ulak(address, settings=settings_of(address)) as ulak:
        for number in range(HELPERS):  # nobody new is asked
            await ulak.dispatch.put_helper(f"h{number}", is_active=False)
        while time.monotonic() < ends_at:
            live = [
                await ulak.dispatch.tasks(status=state, limit=1) for state in (TaskState.SEARCHING, TaskState.OFFERED)
            ]
            if not any(live):
                break
            await ulak.clock.wait(asyncio.Event(), 0.2)
        return await ulak.store.read(faults)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.dispatch.race")
    parser.add_argument("--answers", type=int, default=100_000)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--http", action="store_true", help="one server on SQLite instead of PostgreSQL")
    options = parser.parse_args()
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        said, found = (_over_http if options.http else _on_postgres)(stack, options.answers, options.processes)
    print(f"{said.total():,} answers in {time.monotonic() - began:.0f} s: {dict(said.most_common())}")
    print("faults:", found or "none")
    return 1 if found or said["Unavailable"] or said["503"] or said["refused"] else 0


def _on_postgres(stack: contextlib.ExitStack, answers: int, processes: int) -> tuple[Counter[str], list[Any]]:
    from tests.postgres_server import fresh_database

    address = stack.enter_context(fresh_database())
    asyncio.run(prepare(address))
    said = race("library", address, answers, processes)
    return said, asyncio.run(audit(address))


def _over_http(stack: contextlib.ExitStack, answers: int, processes: int) -> tuple[Counter[str], list[Any]]:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    return race_over_http(folder, answers, processes)


def race_over_http(folder: Path, answers: int, processes: int) -> tuple[Counter[str], list[Any]]:
    """What was answered by one real server on SQLite, and what is wrong with its tables then."""
    address = f"sqlite:///{folder}/ulak.db"
    asyncio.run(prepare(address))
    fleet = Fleet(address, folder, 1, {"dispatch.pause_after_timeouts": "1000"})
    try:
        fleet.start()
        asyncio.run(fleet.answering())
        said = race("http", fleet.address, answers, processes)
    finally:
        fleet.close()
    return said, asyncio.run(audit(address))


if __name__ == "__main__":
    raise SystemExit(main())
