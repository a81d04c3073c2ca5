"""What a drained store says about itself: what it kept, its tally, its log, its integrity."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import psycopg

from tests.crash.child import SETTINGS
from ulak import Ulak
from ulak.settings import load
from ulak.spine.event import EventRecord, read_events
from ulak.spine.jobs import Counts

_PAST = "SELECT id, kind, detail, payload, note FROM past"
_LIVING = """
SELECT kind, state, crashes, owner, key, count(*), min(due_at), max(due_at) FROM job
GROUP BY kind, state, crashes, owner, key ORDER BY 6 DESC LIMIT 20
"""
_ENDINGS = ("done", "cancelled", "expired", "dead")
PAGE = 5_000  # of events: a read has five seconds, on a busy machine too
NUMBERED_SECONDS = 20


class Past(NamedTuple):
    id: int
    kind: str
    epoch: int | None
    payload: Any
    note: str | None = None  # its timeline


@dataclass(frozen=True)
class Audit:
    past: list[Past]
    dead: set[int]
    tokens: set[int]
    owed: int  # jobs that the store made itself: continuations and cron
    kept_twice: int
    broken_chains: int
    gaps: int
    accepted_events_wrong: int
    unbalanced: dict[str, str]
    integrity: str


def audit(address: str) -> Audit:
    with _reading(address) as connection:
        past = [_past(*row) for row in connection.execute(_PAST).fetchall()]
        dead = {row[0] for row in connection.execute("SELECT id FROM dead").fetchall()}
        integrity = _integrity(connection)
    tally, counts, events = asyncio.run(_ask(address))
    tokens = Counter(one.payload["token"] for one in past if isinstance(one.payload, dict) and "token" in one.payload)
    chained = Counter(one.id for one in past if one.kind == "chained")
    after = Counter(one.payload["job"] for one in past if one.kind == "after")
    told = Counter(one.job for one in events if one.name == "accepted")
    return Audit(
        past,
        dead,
        set(tokens),
        owed=sum(one.kind in {"after", "tick"} for one in past),
        kept_twice=tokens.total() - len(tokens),
        broken_chains=(chained - after).total() + (after - chained).total(),
        gaps=sum(one.seq != number for number, one in enumerate(events, 1)),
        accepted_events_wrong=sum(told[identifier] != 1 for identifier in {one.id for one in past} | dead),
        unbalanced=_unbalanced(tally, counts, past),
        integrity=integrity,
    )


def living(address: str) -> list[tuple[Any, ...]]:
    """What a store that does not drain still holds: kind, state, crashes, owner, key, how many, due from and to."""
    with _reading(address) as connection:
        found: list[tuple[Any, ...]] = connection.execute(_LIVING).fetchall()
        return found


@contextlib.contextmanager
def _reading(address: str) -> Iterator[Any]:
    if address.startswith("postgresql:"):
        with psycopg.connect(address) as connection:
            yield connection
    else:
        with contextlib.closing(sqlite3.connect(address.removeprefix("sqlite:///"))) as file:
            yield file


def _integrity(connection: Any) -> str:
    if isinstance(connection, sqlite3.Connection):
        return "; ".join(row[0] for row in connection.execute("PRAGMA integrity_check"))
    return "ok"


def _past(identifier: int, kind: str, detail: str | None, payload: bytes, note: str | None) -> Past:
    result = None if detail is None else json.loads(detail)
    return Past(identifier, kind, result["epoch"] if result else None, json.loads(bytes(payload)), note)


def _unbalanced(tally: dict[str, dict[str, int]], counts: dict[str, Counts], past: list[Past]) -> dict[str, str]:
    """Kinds whose accepted are not what ended and what lives, or whose done are not what was kept."""
    kept = Counter(one.kind for one in past)
    wrong = {}
    for kind, words in tally.items():
        live = sum(number for status, number in counts.get(kind, {}).items() if status != "oldest_at")
        ended = sum(words.get(word, 0) for word in _ENDINGS)
        if words.get("accepted", 0) != ended + live or words.get("done", 0) != kept[kind]:
            wrong[kind] = f"{words}, live {live}, kept {kept[kind]}"
    return wrong


async def _ask(address: str) -> tuple[dict[str, dict[str, int]], dict[str, Counts], list[EventRecord]]:
    settings = load(env={}, overrides={"store": address, **SETTINGS}).settings
    async with Ulak(settings=settings, work=False) as ulak:
        tally = await ulak.jobs.tally()
        wanted = sum(words.get("accepted", 0) for words in tally.values())
        return tally, await ulak.jobs.counts(), await _whole_log(ulak, wanted)


async def _whole_log(ulak: Ulak, accepted: int) -> list[EventRecord]:
    """All events. Those of a process that was killed are numbered by the next relay, so they may take a moment."""
    events: list[EventRecord] = []
    seen = 0
    async with asyncio.timeout(NUMBERED_SECONDS + accepted / 5000):
        while True:
            more = await ulak.store.read(read_events, events[-1].seq if events else 0, PAGE)
            events += more
            seen += sum(one.name == "accepted" for one in more)
            if not more and seen >= accepted:
                return events
            if not more:
                await asyncio.sleep(0.02)
