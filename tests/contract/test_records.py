"""`page_of_records`: jobs of some kinds out of every table, so that a room writes no SQL over jobs."""

from __future__ import annotations

from tests.contract.bench import Bench
from ulak.spine.outcome import Dead
from ulak.spine.units.records import page_of_records

NOTES = ("note.", "note.~")
NEWEST = (1 << 63) - 1


async def test_live_finished_and_dead_jobs_of_some_kinds_are_one_list_newest_first(bench: Bench):
    done, dead = await bench.add("note.a"), await bench.add("note.b")
    await bench.settle(await bench.claim("note.a"))
    await bench.settle(await bench.claim("note.b"), Dead("no", "permanent", "NO"))
    waiting, _ = await bench.add("note.a"), await bench.add("other.a")
    states = ("ready", "done", "dead")
    page = await bench.store.read(page_of_records, NOTES, states, NEWEST, 10)
    assert [(one.id, one.status) for one in page.records] == [(waiting, "ready"), (dead, "dead"), (done, "done")]
    assert not page.more
    only_dead = await bench.store.read(page_of_records, NOTES, ("dead",), NEWEST, 10)
    assert [(one.id, one.code) for one in only_dead.records] == [(dead, "NO")]


async def test_pages_follow_one_another_below_the_last_id(bench: Bench):
    added = [await bench.add("note.a") for _ in range(5)]
    seen, before, more = [], NEWEST, True
    while more:
        records, _, more = await bench.store.read(page_of_records, NOTES, ("ready",), before, 2)
        seen += [one.id for one in records]
        before = records[-1].id
    assert seen == added[::-1]


async def test_a_page_ends_before_its_payloads_are_too_large_but_has_one_record(bench: Bench):
    added = [await bench.add("note.a", "x" * 1000) for _ in range(3)]
    page = await bench.store.read(page_of_records, NOTES, ("ready",), NEWEST, 10, 2_500)
    assert [one.id for one in page.records] == [added[2], added[1]]
    assert (page.sizes, page.more) == ([1002, 1002], True)
    page = await bench.store.read(page_of_records, NOTES, ("ready",), added[1], 10, 10)
    assert [one.id for one in page.records] == [added[0]]
