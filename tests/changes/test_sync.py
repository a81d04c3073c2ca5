"""Syncs: the first one, the following ones, guards, quarantine, approval, and lists that must not be published."""

from __future__ import annotations

import asyncio
import shutil

import pytest

from tests.changes import bad_lists
from tests.changes.conftest import opened
from tests.changes.lists import Alias, User, invoice, simple
from ulak.changes.sources.gib import GibSource
from ulak.changes.syncing.run import SyncRun
from ulak.errors import Conflict, NotFound
from ulak.spine.jobs import read_record
from ulak.testing import drain


def numbers(report, feed="einvoice"):
    found = report.feeds[feed]
    return found.added, found.modified, found.removed


async def test_the_first_sync_is_no_change(desk):
    report = await desk.publish(range(1, 21))
    assert (report.status, report.verdict) == ("success", "published")
    assert numbers(report) == (20, 0, 0)
    assert numbers(report, "edespatch") == (10, 0, 0)
    assert report.feeds["einvoice"].initial
    found = await desk.changes(desk.ago(days=1))
    assert found == {
        "changes": [],
        "totalCount": 0,
        "page": 1,
        "pageSize": 100,
        "totalPages": 0,
        "until": report.feeds["einvoice"].until,
    }


async def test_the_following_syncs_publish_what_differs(desk):
    await desk.publish(range(1, 21))
    since = desk.now()
    pk, gb = simple(range(2, 22))
    pk[5] = User(pk[5].identifier, "ZIRH A.Ş.", documents=pk[5].documents)
    desk.lay(pk, gb)
    report = await desk.sync()
    assert numbers(report) == (1, 1, 1)
    found = await desk.changes(since)
    told = {change["identifier"]: change["changeType"] for change in found["changes"]}
    assert told == {"0000000001": "removed", "0000000021": "added", pk[5].identifier: "modified"}
    assert found["totalCount"] == 3
    assert found["until"] == report.feeds["einvoice"].until


async def test_an_unchanged_list_moves_the_stamp_and_nothing_else(desk):
    first = await desk.publish(range(1, 21))
    again = await desk.sync()
    assert (again.status, again.verdict) == ("success", "unchanged")
    assert again.feeds["einvoice"].cursor == first.feeds["einvoice"].cursor
    assert again.feeds["einvoice"].until > first.feeds["einvoice"].until
    assert await desk.rows() == 20


async def test_the_same_records_in_other_bytes_are_unchanged(desk):
    await desk.publish(range(1, 21))
    pk, gb = simple(range(1, 21))
    desk.lay(pk[::-1], gb)
    assert (await desk.sync()).verdict == "unchanged"


async def test_too_many_removals_are_withheld_and_the_rest_is_published(desk):
    await desk.publish(range(1, 21))
    since = desk.now()
    report = await desk.publish([*range(4, 21), 50])
    assert (report.status, report.verdict) == ("partial", "withheld")
    feed = report.feeds["einvoice"]
    assert (feed.added, feed.removed, feed.withheld, feed.count) == (1, 0, 3, 21)
    told = await desk.changes(since)
    assert [change["changeType"] for change in told["changes"]] == ["added"]
    assert "3 of 20 would be removed" in report.error


async def test_the_guard_trips_again_until_somebody_decides(desk):
    await desk.publish(range(1, 21))
    await desk.publish(range(4, 21))
    again = await desk.sync()
    assert again.verdict == "withheld"
    assert again.feeds["einvoice"].withheld == 3


async def test_users_who_come_back_end_a_withheld_removal(desk):
    await desk.publish(range(1, 21))
    await desk.publish(range(4, 21))
    report = await desk.publish(range(1, 21))
    assert (report.status, numbers(report)) == ("success", (0, 0, 0))
    assert (await desk.sync()).verdict == "unchanged"


async def test_an_approval_publishes_what_was_withheld_as_a_new_sync(desk):
    await desk.publish(range(1, 21))
    since = desk.now()
    held = await desk.publish(range(4, 21))
    shown = await desk.room.preview("gib", held.sync_id)
    assert shown["feeds"]["einvoice"]["removed"] == 3
    assert {one["identifier"] for one in shown["feeds"]["einvoice"]["changes"]} == {f"{n:010d}" for n in (1, 2, 3)}
    with pytest.raises(Conflict, match="held back 3 changes, more than the ceiling 2"):
        await desk.room.approve("gib", held.sync_id, 2)
    begun = await desk.room.approve("gib", held.sync_id, 3)
    await drain(desk.ulak)
    report = await desk.room.get_sync("gib", begun.sync_id)
    assert begun.sync_id != held.sync_id
    assert (report.verdict, numbers(report)) == ("published", (0, 0, 3))
    assert (await desk.changes(since))["totalCount"] == 3
    with pytest.raises(Conflict, match="holds nothing back"):
        await desk.room.approve("gib", held.sync_id, 100)
    assert (await desk.sync()).verdict == "unchanged"


async def test_a_rejection_drops_what_was_withheld(desk):
    await desk.publish(range(1, 21))
    held = await desk.publish(range(4, 21))
    await desk.room.reject("gib", held.sync_id)
    with pytest.raises(Conflict):
        await desk.room.approve("gib", held.sync_id, 100)
    assert (await desk.state()).count == 20


async def test_a_sync_that_held_nothing_back_has_no_preview(desk):
    report = await desk.publish(range(1, 21))
    with pytest.raises(NotFound):
        await desk.room.preview("gib", report.sync_id)


def without_gb(count):
    pk, _ = simple(range(1, count + 1))
    return pk, [invoice("9999999999", "alone")]


async def test_a_missing_gb_list_is_put_into_quarantine_and_not_published_as_modifications(desk):
    await desk.publish(range(1, 201))
    before = await desk.state()
    desk.lay(*without_gb(200))
    report = await desk.sync()
    assert (report.status, report.verdict) == ("failed", "quarantined")
    assert "lose aliases" in report.error
    assert await desk.state() == before
    assert (await desk.room.preview("gib", report.sync_id))["feeds"]["einvoice"]["modified"] == 200


async def test_an_approved_quarantine_is_published(desk):
    await desk.publish(range(1, 201))
    desk.lay(*without_gb(200))
    held = await desk.sync()
    begun = await desk.room.approve("gib", held.sync_id, 201)
    await drain(desk.ulak)
    report = await desk.room.get_sync("gib", begun.sync_id)
    assert (report.status, numbers(report)) == ("success", (1, 200, 0))


async def approved(desk, held):
    begun = await desk.room.approve("gib", held.sync_id, 201)
    await drain(desk.ulak)
    return await desk.room.get_sync("gib", begun.sync_id)


async def test_a_machine_without_the_held_files_takes_the_same_list_from_its_source(desk):
    await desk.publish(range(1, 201))
    desk.lay(*without_gb(200))
    held = await desk.sync()
    shutil.rmtree(desk.folder / "changes" / "gib" / "held")
    assert numbers(await approved(desk, held)) == (1, 200, 0)


async def test_another_list_than_the_one_that_was_held_is_never_published(desk):
    await desk.publish(range(1, 201))
    desk.lay(*without_gb(200))
    held = await desk.sync()
    known = desk.folder / "changes" / "gib" / "held" / "known.json"
    known.write_text(known.read_text().replace('"digest":"', '"digest":"00'))  # as if of an earlier sync
    desk.lay_simple(range(1, 3))
    report = await approved(desk, held)
    assert (report.status, report.verdict) == ("failed", "refused")
    assert "its source has another one by now" in report.error
    assert (await desk.state()).count == 200


async def test_a_quarantine_ends_by_itself_after_equal_lists_if_that_is_wanted(make):
    async with make(changes__accept_after=2) as desk:
        await desk.publish(range(1, 201))
        desk.lay(*without_gb(200))
        assert [(await desk.sync()).verdict for _ in range(3)] == ["quarantined", "quarantined", "published"]


async def test_a_source_that_fails_between_equal_lists_does_not_prolong_a_quarantine(make):
    async with make(changes__accept_after=2) as desk:
        await desk.publish(range(1, 201))
        desk.lay(*without_gb(200))
        listed, verdicts = desk.folder / "lists" / "pk.zip", []
        whole = listed.read_bytes()
        for content in (whole, b"", whole, whole):
            listed.write_bytes(content)
            verdicts.append((await desk.sync()).verdict)
        assert verdicts == ["quarantined", "refused", "quarantined", "published"]


async def test_a_sync_that_publishes_nothing_tells_the_feeds_as_they_stand(desk):
    first = await desk.publish(range(1, 201))
    desk.lay(*without_gb(200))
    quarantined = await desk.sync()
    (desk.folder / "lists" / "pk.zip").write_bytes(b"")
    refused = await desk.sync()
    for report in (quarantined, refused):
        for name, feed in report.feeds.items():
            known = first.feeds[name]
            assert numbers(report, name) == (0, 0, 0)
            assert (feed.withheld, feed.initial, feed.count) == (0, False, known.count)
            assert (feed.cursor, feed.until, feed.state_hash) == (known.cursor, known.until, known.state_hash)


async def test_below_the_floor_only_removals_are_guarded(desk):
    await desk.publish(range(1, 51))
    desk.lay(*without_gb(50))
    assert (await desk.sync()).verdict == "published"


@pytest.mark.parametrize("bad", bad_lists.ALL, ids=lambda bad: bad.__name__)
async def test_a_bad_list_publishes_nothing(desk, bad):
    bad_lists.lists(desk.folder / "lists")
    await desk.sync()
    before, rows = await desk.state(), await desk.rows()
    bad(desk.folder / "lists")
    report = await desk.sync()
    assert (report.status, report.verdict) == ("failed", "refused")
    assert report.error.startswith(("PK", "GB"))
    assert (await desk.state(), await desk.rows()) == (before, rows)
    bad_lists.lists(desk.folder / "lists")
    assert (await desk.sync()).verdict == "unchanged"


async def test_an_older_list_is_refused(desk):
    import os

    await desk.publish(range(1, 21))
    desk.lay_simple(range(1, 22))
    for name in ("pk.zip", "gb.zip"):
        os.utime(desk.folder / "lists" / name, (1_000_000_000, 1_000_000_000))
    report = await desk.sync()
    assert (report.verdict, "older than the last" in report.error) == ("refused", True)


async def test_a_second_sync_beside_one_that_runs_is_partial_and_changes_nothing(desk):
    desk.lay_simple(range(1, 21))
    first, second = await asyncio.gather(desk.room.start("gib"), desk.room.start("gib"))
    assert {first.status, second.status} == {"running", "partial"}
    assert first.sync_id == second.sync_id
    await drain(desk.ulak)
    assert (await desk.room.get_sync("gib", first.sync_id)).verdict == "published"
    assert len(await desk.room.list_syncs("gib")) == 1


async def test_an_unknown_registry_or_sync_is_not_found(desk):
    with pytest.raises(NotFound):
        await desk.room.start("nobody")
    with pytest.raises(NotFound):
        await desk.room.get_sync("gib", "0ca32359-6fc0-8000-8000-0000756c616b")
    with pytest.raises(NotFound):
        await desk.room.get_sync("gib", "nonsense")


async def test_a_feed_that_was_emptied_begins_anew_and_followers_are_told(desk):
    users = [User(f"{n:010d}", documents={"Invoice": [Alias(f"a{n}")]}) for n in range(1, 6)]
    with_despatch = [User(one.identifier, documents={**one.documents, "DespatchAdvice": [Alias("d")]}) for one in users]
    gb = [invoice("9999999999", "g")]
    desk.lay(users, gb)
    first = await desk.sync()
    assert first.feeds["edespatch"].count == 0
    empty_since = first.feeds["edespatch"].until
    assert (await desk.changes(empty_since, feed="edespatch"))["totalCount"] == 0
    desk.lay(with_despatch, gb)
    second = await desk.sync()
    assert second.feeds["edespatch"].initial
    from ulak.errors import Gone

    with pytest.raises(Gone):
        await desk.changes(empty_since, feed="edespatch")


async def test_a_change_tells_what_became_of_each_alias(desk):
    given = {"gone": "2020-01-01T00:00:00", "again": "2020-01-01T00:00:00", "stays": "2020-01-01T00:00:00"}
    gb = [invoice("9999999999", "g")]
    desk.lay([User("1", documents={"Invoice": [Alias(*one) for one in given.items()]})], gb)
    since = (await desk.sync()).feeds["einvoice"].until
    given = {"again": "2026-01-01T00:00:00", "new": "2026-02-02T00:00:00", "stays": "2020-01-01T00:00:00"}
    desk.lay([User("1", documents={"Invoice": [Alias(*one) for one in given.items()]})], gb)
    await desk.sync()
    (change,) = (await desk.changes(since, detail=True))["changes"]
    assert change["changedFields"] == ["aliases"]
    told = [(one["alias"], one["type"], one["change"], one["creationTime"]) for one in change["aliasChanges"]]
    assert told == [
        ("again", "PK", "recreated", "2026-01-01T00:00:00"),
        ("gone", "PK", "removed", None),
        ("new", "PK", "added", "2026-02-02T00:00:00"),
    ]


async def test_the_cause_of_a_change_is_the_source_the_parser_or_another_way_to_compare(kept_address, tmp_path, clock):
    async def cause(last, **given):
        async with opened(kept_address, tmp_path, clock, **given) as desk:
            since = desk.now()
            await desk.publish(range(1, last))
            (change,) = (await desk.changes(since, detail=True))["changes"]
            return change["cause"]

    async with opened(kept_address, tmp_path, clock) as desk:
        await desk.publish(range(1, 21))
    assert await cause(22) == "source"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(GibSource, "version", "gib-of-tomorrow")
        assert await cause(23) == "parser"
        assert await cause(24) == "source"
        assert await cause(25, changes__compare="seed") == "rebase"


async def test_another_version_of_the_parser_publishes_nothing_when_it_reads_the_same(desk, monkeypatch):
    await desk.publish(range(1, 21))
    monkeypatch.setattr(GibSource, "version", "gib-of-tomorrow")
    assert (await desk.sync()).verdict == "unchanged"


async def test_events_tell_of_syncs_and_never_of_records(desk):
    await desk.publish(range(1, 21))
    await desk.publish(range(10, 21))
    events = [event.name for event in await desk.ulak.jobs.events(limit=1000) if event.name.startswith("changes.")]
    assert events == ["changes.sync.completed", "changes.sync.partial", "changes.guard.tripped"]


async def test_the_result_of_the_job_is_the_sync(desk):
    report = await desk.publish(range(1, 5))

    record = await desk.ulak.store.read(read_record, desk.ulak.store.ids.from_uuid(report.sync_id))
    assert record.status == "done"
    assert record.detail["verdict"] == "published"


async def test_a_sync_whose_job_was_cancelled_has_failed(desk, monkeypatch):
    await desk.publish(range(1, 5))
    with monkeypatch.context() as patched:
        patched.setattr(SyncRun, "run", lambda _run: asyncio.Event().wait())
        begun = await desk.room.start("gib")
        await desk.ulak.jobs.cancel(desk.ulak.store.ids.from_uuid(begun.sync_id))
        await drain(desk.ulak)
    found = await desk.room.get_sync("gib", begun.sync_id)
    assert (found.status, "cancelled" in found.error) == ("failed", True)
    assert (await desk.room.list_syncs("gib"))[0].status == "failed"
    assert (await desk.sync()).status == "success"
