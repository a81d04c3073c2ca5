"""One suite for every store: the fixtures open it, and a small bench speaks the verbs as a worker would."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.contract.bench import Bench, Ears
from tests.postgres_server import fresh_database
from ulak.clock import ManualClock
from ulak.spine.capacity import live_pool
from ulak.spine.store import Store
from ulak.stores.postgres.store import PostgresStore
from ulak.stores.sqlite.store import SqliteStore

STORES = ["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.fixture(params=STORES)
def address(request, tmp_path):
    if request.param == "postgres":
        with fresh_database() as found:
            yield found
    else:
        yield "memory:" if request.param == "memory" else f"{tmp_path}/ulak.db"


@pytest.fixture
def database():
    """A PostgreSQL database with the schema in it, for what only that store does."""
    with fresh_database() as found:
        yield found


def make_store(address: str, clock: ManualClock, bounds: dict[str, int]) -> Store:
    def capacity(kind: str) -> int:
        return bounds.get(kind, 1_000_000)

    def live(kind: str) -> int:
        return bounds.get(live_pool(kind), capacity(kind))

    if address.startswith("postgresql:"):
        return PostgresStore(address, clock, capacity, live=live)
    return SqliteStore(None if address == "memory:" else address, clock, capacity, live=live)


Opener = Callable[..., contextlib.AbstractAsyncContextManager[Bench]]


@pytest.fixture
def opened(clock) -> Opener:
    """Open a bench on an address: `async with opened(address, bounds={"mail": 5}) as bench`."""

    @contextlib.asynccontextmanager
    async def open_bench(address: str, bounds: dict[str, int] | None = None, **options: Any) -> AsyncIterator[Bench]:
        store = make_store(address, options.get("clock", clock), bounds or {})
        ears = Ears()
        await store.open(ears)
        try:
            yield Bench(store, ears, clock)
        finally:
            await store.close()

    return open_bench


@pytest.fixture
async def bench(opened, address):
    """A bench on each store in turn."""
    async with opened(address) as found:
        yield found
