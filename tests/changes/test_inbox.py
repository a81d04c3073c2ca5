"""Files that a person names for one sync: kept for each of its attempts, and gone after its end, however it ended."""

from __future__ import annotations

import shutil

import pytest

from tests.changes.lists import simple
from ulak.changes import jobs
from ulak.changes.jobs import ChangesJobs
from ulak.changes.syncing import lease
from ulak.changes.syncing.comparing import Comparer
from ulak.errors import Invalid
from ulak.testing import drain

NAME = "a" * 32


def stage(desk, name: str = NAME) -> str:
    folder = desk.room.inbox("gib") / name
    folder.mkdir(parents=True)
    for role in ("PK", "GB"):
        shutil.copyfile(desk.folder / "lists" / f"{role.lower()}.zip", folder / role)
    return name


def left(desk) -> list[str]:
    return [path.name for path in desk.room.inbox("gib").iterdir()]


async def ended(desk, begun):
    await drain(desk.ulak)
    return await desk.room.get_sync("gib", begun.sync_id)


async def test_files_of_a_sync_are_gone_after_its_end(desk):
    desk.lay_simple(range(1, 5))
    report = await ended(desk, await desk.room.start("gib", inbox=stage(desk)))
    assert (report.verdict, left(desk)) == ("published", [])


async def test_files_of_another_registry_are_refused_and_begin_no_sync(desk):
    folder = desk.room.inbox("gib") / NAME
    folder.mkdir(parents=True)
    (folder / "list").write_text("id,name")
    with pytest.raises(Invalid, match="the files PK and GB, but PK is missing"):
        await desk.room.start("gib", inbox=NAME)
    assert (await desk.room.list_syncs("gib"), left(desk)) == ([], [])


async def test_an_attempt_that_dies_before_its_commit_finds_its_files_again(desk, monkeypatch):
    done, failures = ChangesJobs._done, [RuntimeError("the process died")]

    def die_once(jobs, ending):
        if failures:
            raise failures.pop()
        return done(jobs, ending)

    monkeypatch.setattr(ChangesJobs, "_done", die_once)
    desk.lay_simple(range(1, 5))
    begun = await desk.room.start("gib", inbox=stage(desk))
    assert (await ended(desk, begun)).status == "running"
    desk.clock.advance(4000)
    assert ((await ended(desk, begun)).verdict, left(desk)) == ("published", [])


async def test_an_approval_that_dies_before_its_commit_finds_the_held_list_again(desk, monkeypatch):
    await desk.publish(range(1, 201))
    desk.lay(simple(range(1, 201))[0], simple([999])[1])
    held = await desk.sync()
    assert held.verdict == "quarantined"
    done, failures = ChangesJobs._done, [RuntimeError("the process died")]

    def die_once(jobs, ending):
        if failures:
            raise failures.pop()
        return done(jobs, ending)

    monkeypatch.setattr(ChangesJobs, "_done", die_once)
    begun = await desk.room.approve("gib", held.sync_id, 1000)
    await drain(desk.ulak)
    desk.lay_simple(range(1, 3))  # the source has another list by now
    desk.clock.advance(4000)
    assert (await ended(desk, begun)).verdict == "published"
    assert not (desk.folder / "changes" / "gib" / "held").exists()


async def test_files_for_a_sync_that_was_refused_as_the_second_are_dropped(desk):
    desk.lay_simple(range(1, 5))
    await desk.room.start("gib")
    begun = await desk.room.start("gib", inbox=stage(desk))
    assert (begun.status, left(desk)) == ("partial", [])


async def test_files_of_a_sync_that_finds_another_at_work_are_dropped(desk, monkeypatch):
    other = await desk.ulak.enqueue("ours.other")  # nobody serves it: it stays unfinished
    begin = jobs._begin

    def begin_behind_another(tx, order):
        lease.take(tx, "gib", other, lambda _tx, _job: False)
        return begin(tx, order)

    monkeypatch.setattr(jobs, "_begin", begin_behind_another)
    desk.lay_simple(range(1, 5))
    begun = await desk.room.start("gib", inbox=stage(desk))
    assert ((await ended(desk, begun)).verdict, left(desk)) == ("busy", [])


async def test_files_of_a_job_that_died_are_dropped_after_the_next_sync(desk, monkeypatch):
    async def crash(*_given):
        raise RuntimeError("the process died")

    desk.lay_simple(range(1, 5))
    with monkeypatch.context() as patched:
        patched.setattr(Comparer, "run", crash)
        begun = await desk.room.start("gib", inbox=stage(desk))
        for _ in range(6):
            await drain(desk.ulak)
            assert left(desk)
            desk.clock.advance(4000)
    found = await desk.room.get_sync("gib", begun.sync_id)
    assert (found.status, found.error) == ("failed", "its job has ended without a result (dead); sync again")
    assert ((await desk.sync()).verdict, left(desk)) == ("published", [])
