"""Two installations that know nothing of each other never give two messages one id."""

from __future__ import annotations

import asyncio

from ulak import Ulak
from ulak.clock import ManualClock
from ulak.settings import Settings


async def ids_of(path):
    async with Ulak(f"sqlite:///{path}", settings=Settings(), clock=ManualClock(), work=False) as ulak:
        accepted = [await ulak.notify.send("SMS", "+905551112233", str(number)) for number in range(50)]
        found = [(await ulak.notify.get(one)).id for one in accepted]
    assert found == list(map(str, accepted))
    return set(accepted)


async def test_the_same_millisecond_in_two_stores_gives_different_ids(tmp_path):
    first, second = await asyncio.gather(ids_of(tmp_path / "a.db"), ids_of(tmp_path / "b.db"))
    assert not first & second
    assert len(first | second) == 100


async def test_a_store_keeps_its_mark(tmp_path):
    async with Ulak(f"sqlite:///{tmp_path}/a.db", settings=Settings(), work=False) as ulak:
        accepted = await ulak.notify.send("SMS", "+905551112233", "x")
    async with Ulak(f"sqlite:///{tmp_path}/a.db", settings=Settings(), work=False) as ulak:
        assert (await ulak.notify.get(accepted)).id == str(accepted)
