"""Settings of the room where they take effect: guards and their floors, archives that grow old, and cron."""

from __future__ import annotations

import pytest

from tests.changes.lists import simple
from tests.flow.stores import events_with
from ulak.errors import NotFound
from ulak.spine.units.cron import FIRE_DUE, Tick

PK, GB = simple(range(1, 21))


async def after(make, then, **given):
    """The verdict about a second list: `then`, after twenty users."""
    async with make(**{f"changes__{name}": value for name, value in given.items()}) as desk:
        await desk.publish(range(1, 21))
        desk.lay(*then)
        return (await desk.sync()).verdict


@pytest.mark.parametrize(
    ("then", "given", "verdict"),
    [
        (simple(range(4, 21)), {}, "withheld"),
        (simple(range(4, 21)), {"removal_percent": 20}, "published"),
        (simple(range(4, 21)), {"removal_floor": 3}, "published"),
        (simple(range(4, 21)), {"removal_floor": 2}, "withheld"),
        (simple(range(1, 21), title="YENİ"), {}, "published"),
        (simple(range(1, 21), title="YENİ"), {"guard_floor": 20}, "quarantined"),
        (simple(range(1, 21), title="YENİ"), {"guard_floor": 21}, "published"),
        (simple(range(1, 21), title="YENİ"), {"guard_floor": 5, "modified_percent": 100}, "published"),
        ((PK, GB[1:]), {"guard_floor": 5}, "published"),
        ((PK, GB[1:]), {"guard_floor": 5, "alias_loss_percent": 4}, "quarantined"),
        (simple(range(1, 24)), {"guard_floor": 5}, "published"),
        (simple(range(1, 24)), {"guard_floor": 5, "count_percent": 10}, "quarantined"),
    ],
)
async def test_each_guard_goes_by_its_setting(make, then, given, verdict):
    assert await after(make, then, **given) == verdict


async def test_archives_are_kept_for_their_days_and_the_newest_always(make):
    async with make(changes__archive_days=2) as desk:
        await desk.publish(range(1, 5))
        (old,) = await desk.room.feeds.archives("einvoice")
        desk.clock.advance(86_400)
        await desk.publish(range(1, 6))
        assert len(await desk.room.feeds.archives("einvoice")) == 2
        desk.clock.advance(1.5 * 86_400)
        await desk.publish(range(1, 7))
        kept = await desk.room.feeds.archives("einvoice")
        assert [row.count for row in kept] == [6, 5]
        with pytest.raises(NotFound):
            await desk.room.storehouse.find("einvoice", old.name)
        desk.clock.advance(30 * 86_400)
        await desk.sync()
        assert (await desk.room.feeds.archive("einvoice", None)).count == 6


async def test_a_cron_syncs_by_itself_at_its_time_in_istanbul(make):
    async with make(changes__gib__cron="30 11 * * *") as desk:  # the clock begins at 11:00 there
        desk.lay_simple(range(1, 5))
        await desk.ulak.store.submit(FIRE_DUE, Tick(tuple(desk.ulak.cron_entries)))  # its times count from now on
        desk.clock.advance(25 * 60)
        assert await desk.room.list_syncs("gib") == []
        desk.clock.advance(10 * 60)
        await events_with(desk.ulak, "changes.sync.completed")
        (report,) = await desk.room.list_syncs("gib")
        assert (report.verdict, report.feeds["einvoice"].count) == ("published", 4)
