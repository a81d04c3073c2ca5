"""The kinds of store that flows run on, and what a flow may ask of each."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import AsyncIterator, Awaitable, Iterator
from pathlib import Path

import pytest

from ulak import Ulak
from ulak.spine.event import EventRecord
from ulak.spine.units.claim import Claimed, ClaimVerbs, Demand, Want

HAS_POSTGRES = importlib.util.find_spec("tests.postgres_server") is not None

POSTGRES = [pytest.param("postgres", marks=pytest.mark.postgres)] if HAS_POSTGRES else []
STORES = ["memory", *POSTGRES]


async def events_with(ulak: Ulak, name: str, times: int = 1) -> list[EventRecord]:
    """The log once it has that many events of this name; a shared store numbers them a little after the commit."""
    while True:
        ulak.loops.changed.clear()
        found = await ulak.jobs.events(limit=100_000)
        if sum(event.name == name for event in found) >= times:
            return found
        await ulak.loops.changed.wait()


def claim(ulak: Ulak, kind: str, number: int = 1, owner: int | None = None) -> Awaitable[Claimed]:
    """Take jobs past the worker, as a worker of the given owner would."""
    store = ulak.store
    want = Want(kind, number, (0, 1, 2, 3))
    return store.submit(
        ClaimVerbs().verb, Demand(store.owner if owner is None else owner, (want,), number, {"async": number})
    )


@contextlib.asynccontextmanager
async def nothing_is_claimed(ulak: Ulak) -> AsyncIterator[None]:
    """While a test prepares what the worker is to find."""
    worker = ulak.loops.worker
    worker._settler.trouble = True
    worker.claimer._wake.set()  # it may have left a claim with the store: it takes that back
    await worker.claimer._not_claiming.wait()
    yield
    worker._settler.trouble = False
    worker.claimer.note_all()


def address_of(kind: str, folder: Path) -> Iterator[str]:
    if kind == "memory":
        yield "memory:"
    elif kind == "sqlite":
        yield f"sqlite:///{folder}/ulak.db"
    else:
        from tests.postgres_server import fresh_database

        with fresh_database() as address:
            yield address
