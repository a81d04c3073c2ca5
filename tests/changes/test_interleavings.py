"""Polls, pages, prunes and syncs in any order: every consumer ends with the feed as it is, nothing lost or doubled."""

from __future__ import annotations

import random

import pytest

from tests.changes.lists import simple
from ulak.changes import decide, istanbul, pruning, records
from ulak.changes.archive import read_archive
from ulak.errors import Gone

STEPS = 10_000


class Consumer:
    """Follows by time, page by page, as the seed tells it to; a window may be interrupted at any page."""

    def __init__(self, desk, size: int) -> None:
        self.desk = desk
        self.size = size
        self.copy: dict[str, dict] | None = None
        self.since = ""
        self.window: tuple[str, int] | None = None
        self.seen: set[tuple[str, str]] = set()

    async def step(self) -> None:
        if self.copy is None:
            await self.bootstrap()
            return
        until, page = self.window or (None, 1)
        try:
            answer = await self.desk.changes(self.since, until, page, self.size)
        except Gone:
            self.copy = None
            return
        for change in answer["changes"]:
            mark = (change["identifier"], change["changedAt"])
            assert mark not in self.seen, f"{mark} came twice"
            self.seen.add(mark)
            self.apply(change)
        if page < answer["totalPages"]:
            self.window = (answer["until"], page + 1)
        else:
            self.window, self.since = None, answer["until"]

    async def bootstrap(self) -> None:
        row = await self.desk.room.feeds.archive("einvoice", None)
        rows = read_archive(await self.desk.room.storehouse.find("einvoice", row.name))
        _, head = next(rows)
        self.copy, self.since, self.window, self.seen = dict(rows), head["until"], None, set()

    def apply(self, change: dict) -> None:
        identifier = change.pop("identifier")
        word, _ = change.pop("changeType"), change.pop("changedAt")
        if word == "removed":
            del self.copy[identifier]
        else:
            assert (identifier in self.copy) == (word == "modified")
            self.copy[identifier] = change

    async def catch_up(self) -> None:
        while self.window is not None or self.copy is None or self.since != await self._head():
            await self.step()

    async def _head(self) -> str:
        return istanbul.shown((await self.desk.state()).stamp)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
async def test_no_interleaving_loses_or_doubles_a_change(desk, seed):
    choose = random.Random(seed)
    present = set(range(1, 41))
    titles = dict.fromkeys(range(1, 200), "A")

    def lay() -> None:
        pk, gb = simple(sorted(present))
        desk.lay([_titled(user, titles) for user in pk], [_titled(user, titles) for user in gb])

    lay()
    await desk.sync()
    consumers = [Consumer(desk, size) for size in (1, 3, 7, 1000)]
    done = 0
    while done < STEPS // 40:  # each of these syncs, and between two of them consumers take many steps
        done += 1
        roll = choose.random()
        if roll < 0.25:
            number = choose.randrange(1, 200)
            present.symmetric_difference_update({number} if len(present) > 30 or number not in present else set())
            titles[choose.randrange(1, 200)] = choose.choice("ABC")
            lay()
            await desk.sync(pass_seconds=choose.choice([0, 0.2, 30, 3600]))
        elif roll < 0.3:
            desk.clock.advance(choose.choice([0.5, 86_400, 20 * 86_400, 40 * 86_400]))
        elif roll < 0.35:
            await desk.ulak.store.write(pruning.raise_floor, "einvoice", 30)
            while await desk.ulak.store.write(pruning.drop_superseded, "einvoice"):
                pass
        else:
            for _ in range(40):
                await choose.choice(consumers).step()
    feed = await desk.state()
    rows = await desk.ulak.store.read(records.list_records, "einvoice", "", "g", feed.head_pos, 10_000)
    wanted = {row.key[2:]: row.body for row in rows}
    from ulak import codec

    for consumer in consumers:
        await consumer.catch_up()
        assert consumer.copy == {identifier: codec.decode(body) for identifier, body in wanted.items()}
    assert len(wanted) == feed.count == len(present)
    assert decide.pages(0, 1) == 0


def _titled(user, titles):
    from dataclasses import replace

    return replace(user, title=f"{titles[int(user.identifier)]} {user.identifier}")
