"""An Ulak whose lists are files of the test, on each kind of store, with a clock that the test moves."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from tests.api.serving import Served
from tests.changes.lists import User, simple, write_lists
from tests.flow.stores import STORES, address_of
from ulak import Ulak
from ulak.changes import istanbul, records
from ulak.changes.model import SyncReport
from ulak.changes.service import Changes
from ulak.clock import ManualClock, to_datetime
from ulak.http.app import build_app
from ulak.http.server import address_of as address_of_listener
from ulak.http.server import listen, listening
from ulak.settings import load
from ulak.testing import drain


@dataclass
class Desk:
    """The room of one test, and the lists that it will find."""

    ulak: Ulak
    room: Changes
    folder: Path
    clock: ManualClock

    def lay(self, pk: list[User], gb: list[User]) -> None:
        write_lists(self.folder / "lists", pk, gb)

    def lay_simple(self, numbers: Any, **given: Any) -> None:
        self.lay(*simple(numbers, **given))

    async def sync(self, registry: str = "gib", *, pass_seconds: float = 60) -> SyncReport:
        """One sync of what lies there, and everything that follows it."""
        self.clock.advance(pass_seconds)
        begun = await self.room.start(registry)
        await drain(self.ulak)
        return await self.room.get_sync(registry, begun.sync_id)

    async def publish(self, numbers: Any, **given: Any) -> SyncReport:
        self.lay_simple(numbers, **given)
        return await self.sync()

    async def changes(self, since: str, until: str | None = None, page: int = 1, size: int = 100, **given: Any) -> Any:
        found = await self.room.feeds.changes(
            given.pop("feed", "einvoice"),
            istanbul.parse("since", since),
            None if until is None else istanbul.parse("until", until),
            page,
            size,
            **given,
        )
        return msgspec.json.decode(found)

    def clock_datetime(self):
        return to_datetime(self.clock.now())

    def now(self) -> str:
        return istanbul.shown(self.clock.now() // 1000)

    def ago(self, *, days: float = 0, seconds: float = 0) -> str:
        return istanbul.shown(round(self.clock.now() / 1000 - days * 86_400 - seconds))

    async def rows(self, feed: str = "einvoice") -> int:
        """Versions in the table, published or not."""
        return len(await self.ulak.store.read(_all_rows, feed))

    async def state(self, feed: str = "einvoice"):
        return (await self.ulak.store.read(records.read_feeds))[feed]


def _all_rows(tx, feed):
    return tx.rows(records.sql.list_versions, feed=feed, start=-1, end=1 << 40)


@contextlib.asynccontextmanager
async def opened(address: str, folder: Path, clock: ManualClock | None, **changes: Any) -> AsyncIterator[Desk]:
    lists = folder / "lists"
    lists.mkdir(parents=True, exist_ok=True)
    given = {
        "store": address,
        "http.port": 0,
        "changes.folder": str(folder / "changes"),
        "changes.gib.pk_url": f"file://{lists}/pk.zip",
        "changes.gib.gb_url": f"file://{lists}/gb.zip",
    } | {name.replace("__", "."): value for name, value in changes.items()}
    ulak = Ulak(settings=load(env={}, overrides=given).settings, clock=clock)
    async with ulak:
        yield Desk(ulak, ulak.changes, folder, clock)


@dataclass
class ServedDesk:
    """The same over HTTP: `served` asks, `desk` lays lists and moves the clock."""

    served: Served
    desk: Desk

    async def get(self, path: str, **options: Any) -> Any:
        return await self.served.get(path, **options)

    async def post(self, path: str, *given: Any, **options: Any) -> Any:
        return await self.served.post(path, *given, **options)


@contextlib.asynccontextmanager
async def served_over(desk: Desk) -> AsyncIterator[ServedDesk]:
    with contextlib.closing(listen(desk.ulak.settings.http)) as listener:
        door = build_app(desk.ulak)
        async with door.life(), listening(door, listener), aiohttp.ClientSession() as session:
            yield ServedDesk(Served(desk.ulak, door, address_of_listener(listener), session), desk)


@pytest.fixture
async def door(desk):
    async with served_over(desk) as found:
        yield found


@pytest.fixture(params=STORES)
def address(request, tmp_path):
    """The address of an empty store, of each kind in turn."""
    with contextlib.contextmanager(address_of)(request.param, tmp_path) as found:
        yield found


@pytest.fixture
def kept_address(address, tmp_path):
    """The same, of a store that outlives the Ulak that has it open."""
    return f"sqlite:///{tmp_path}/ulak.db" if address == "memory:" else address


@pytest.fixture
async def desk(address, tmp_path, clock):
    async with opened(address, tmp_path, clock) as found:
        yield found


@pytest.fixture
def make(address, tmp_path, clock):
    """A room with settings of its own: `async with make(changes__retention_days=5) as desk`."""
    return lambda **given: opened(address, tmp_path, clock, **given)
