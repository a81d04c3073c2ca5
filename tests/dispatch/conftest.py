"""What the room's flows need: an Ulak on each kind of store, helpers around one place, and what was posted."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.postgres_server import fresh_database
from ulak import Ulak
from ulak.dispatch.command import TaskView
from ulak.settings import Settings

STORES = ["memory", pytest.param("postgres", marks=pytest.mark.postgres)]
HERE = {"latitude": 41.0, "longitude": 29.0}


@pytest.fixture(params=STORES)
def address(request):
    """The address of an empty store, of each kind in turn."""
    with contextlib.ExitStack() as stack:
        yield {"memory": lambda: "memory:", "postgres": lambda: stack.enter_context(fresh_database())}[request.param]()


@pytest.fixture
def make(address, clock) -> Callable[..., Ulak]:
    """An Ulak on the store and the clock of this test; settings of the room by name: make(width=3)."""

    def build(*, work: bool = True, **settings: Any) -> Ulak:
        given = Settings(store=address, dispatch={"time_zone": "UTC", **settings})
        return Ulak(address, settings=given, clock=clock, work=work)

    return build


@pytest.fixture
async def ulak(make) -> AsyncIterator[Ulak]:
    async with make() as opened:
        yield opened


async def settle_in(ulak: Ulak, number: int, **fields: Any) -> list[str]:
    """Helpers h0, h1, …: eleven metres from one to the next, h0 nearest."""
    names = [f"h{index}" for index in range(number)]
    for index, name in enumerate(names):
        place = {"latitude": 41.0 + index * 1e-4, "longitude": 29.0}
        await ulak.dispatch.put_helper(name, {"name": name.upper(), **place, **fields})
    return names


def request(**fields: Any) -> dict[str, Any]:
    return {"requesterId": "ayşe", "category": "market", **HERE, **fields}


async def said(ulak: Ulak, recipient: str) -> list[str]:
    """What somebody's inbox holds, oldest first."""
    return [item.body for item in reversed(await ulak.notify.inbox(recipient))]


def asked(view: TaskView) -> list[str]:
    return [one.helper for one in view.pending]
