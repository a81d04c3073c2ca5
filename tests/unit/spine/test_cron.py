"""Cron: the hour that comes twice, times that were missed, and expressions that are none."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.contract.bench import Bench, Ears
from ulak import codec
from ulak.clock import to_datetime, to_millis
from ulak.errors import Invalid
from ulak.spine.query import Query
from ulak.spine.units.cron import FIRE_DUE, CronEntry, Tick
from ulak.stores.sqlite.store import SqliteStore

_FORGET = Query("forget", "UPDATE cron SET expression = NULL, time_zone = NULL", "", ())


def millis(*parts):
    return to_millis(datetime(*parts, tzinfo=UTC))


def times(entry, after, number):
    found = []
    for _ in range(number):
        after = entry.next_after(after)
        found.append(to_datetime(after).strftime("%d %H:%M"))
    return found


def test_a_daily_time_in_the_hour_that_comes_twice_fires_once():
    entry = CronEntry("nightly", "30 2 * * *", "report", time_zone="Europe/Berlin")
    assert times(entry, millis(2027, 10, 30, 12), 3) == ["31 00:30", "01 01:30", "02 01:30"]


def test_what_runs_all_the_time_runs_on_through_both_changes():
    entry = CronEntry("often", "*/30 * * * *", "report", time_zone="Europe/Berlin")
    autumn = times(entry, millis(2027, 10, 30, 23, 45), 4)
    assert autumn == ["31 00:00", "31 00:30", "31 01:00", "31 01:30"]
    spring = times(entry, millis(2027, 3, 28, 0, 15), 4)
    assert spring == ["28 00:30", "28 01:00", "28 01:30", "28 02:00"]


def test_a_month_has_a_last_day_and_february_sometimes_one_more():
    entry = CronEntry("leap", "0 0 29 2 *", "report")
    assert entry.next_after(millis(2027, 3, 1)) == millis(2028, 2, 29)


@pytest.mark.parametrize(
    ("expression", "zone"),
    [("", "UTC"), ("* * * *", "UTC"), ("61 * * * *", "UTC"), ("0 0 31 2 *", "UTC"), ("* * * * *", "Mars/Olympus")],
)
def test_what_can_never_fire_is_refused_by_its_name(expression, zone):
    with pytest.raises(Invalid, match="cron entry odd"):
        CronEntry("odd", expression, "report", time_zone=zone).next_after(0)


@pytest.fixture
async def bench(clock):
    store = SqliteStore(None, clock, lambda pool: 1000)
    ears = Ears()
    await store.open(ears)
    yield Bench(store, ears, clock)
    await store.close()


async def test_times_that_passed_while_nobody_ran_fire_once_and_late(bench: Bench):
    entry = CronEntry("often", "*/5 * * * *", "report", {"to": "ada"})
    first, fired = await bench.store.submit(FIRE_DUE, Tick((entry,)))
    assert fired == []
    bench.clock.advance(3600)
    following, fired = await bench.store.submit(FIRE_DUE, Tick((entry,)))
    assert fired == ["often"]
    assert following > bench.clock.now()
    (lease,) = await bench.claim("report")
    assert codec.decode(lease.payload) == {"entry": "often", "due_at": first, "payload": {"to": "ada"}}
    assert (await bench.store.submit(FIRE_DUE, Tick((entry,))))[1] == []


@pytest.mark.parametrize("expression", ["30 2 * * *", "15,45 2 * * *", "0 1-3 * * *", "*/10 2 25 10 *"])
@pytest.mark.parametrize("minute", range(0, 60, 7))
def test_in_the_hour_that_comes_twice_the_next_time_is_never_over(expression, minute):
    entry = CronEntry("nightly", expression, "report", time_zone="Europe/Berlin")
    second_pass = millis(2026, 10, 25, 1, minute)  # 02:xx in Berlin for the second time
    assert entry.next_after(second_pass) > second_pass


async def test_an_entry_that_is_first_seen_in_the_hour_that_comes_twice_does_not_storm(bench: Bench):
    entry = CronEntry("nightly", "30 2 * * *", "report", time_zone="Europe/Berlin")
    bench.clock.advance((millis(2027, 10, 31, 1, 5) - bench.clock.now()) / 1000)
    for _ in range(5):
        following, fired = await bench.store.submit(FIRE_DUE, Tick((entry,)))
        assert fired == []
        assert following > bench.clock.now()


@pytest.mark.parametrize("change", [{"expression": "0 3 * * *"}, {"time_zone": "Europe/Istanbul"}], ids=repr)
async def test_an_entry_with_other_words_begins_anew_and_fires_for_no_time_of_before(bench: Bench, change):
    entry = CronEntry("nightly", "0 2 * * *", "report")
    await bench.store.submit(FIRE_DUE, Tick((entry,)))
    bench.clock.advance(3 * 86_400)
    other = replace(entry, **change)
    following, fired = await bench.store.submit(FIRE_DUE, Tick((other,)))
    assert (following, fired) == (other.next_after(bench.clock.now()), [])
    bench.clock.advance(2 * 86_400)
    assert (await bench.store.submit(FIRE_DUE, Tick((other,))))[1] == ["nightly"]  # late, but its own time


async def test_a_row_of_before_it_kept_the_words_is_that_of_the_same_entry(bench: Bench):
    entry = CronEntry("nightly", "0 2 * * *", "report")
    await bench.store.submit(FIRE_DUE, Tick((entry,)))
    await bench.store.write(lambda tx: tx.execute(_FORGET))
    bench.clock.advance(86_400)
    assert (await bench.store.submit(FIRE_DUE, Tick((entry,))))[1] == ["nightly"]
    bench.clock.advance(86_400)
    assert (await bench.store.submit(FIRE_DUE, Tick((replace(entry, expression="0 3 * * *"),))))[1] == []


async def test_old_and_new_words_side_by_side_fire_each_at_their_own_times_and_the_old_ones_also_after(bench: Bench):
    """A rolling deploy, and one that is taken back: nobody storms, and nobody waits for ever."""
    old = CronEntry("report", "0 * * * *", "report")
    new = replace(old, expression="30 * * * *")
    bench.clock.advance(-(bench.clock.now() % 3_600_000) / 1000 + 3600 + 600)  # ten past

    async def look(entry, opens=False):
        return (await bench.store.submit(FIRE_DUE, Tick((entry,), opens)))[1]

    async def minutes_fired(*entries):
        minutes = []
        for _ in range(120):
            bench.clock.advance(60)
            minutes += [to_datetime(bench.clock.now()).minute for entry in entries if await look(entry)]
        return minutes

    assert await look(old, opens=True) == await look(new, opens=True) == []
    assert await minutes_fired(old, new) == [30, 0, 30, 0]
    assert await minutes_fired(old) == [0, 0]
    assert await minutes_fired(new) == [30, 30]
