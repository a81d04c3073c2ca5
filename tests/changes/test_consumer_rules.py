"""The seed's rules for consumers (K1 to K7), its edge cases (A to F) and its questions, each by its name."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.changes.conftest import opened
from tests.changes.lists import Alias, simple
from ulak.changes import records
from ulak.changes.archive import read_archive
from ulak.errors import Gone, Unavailable
from ulak.testing import drain


async def bootstrap(desk, feed="einvoice"):
    """The newest archive: its head, and the records by identifier."""
    row = await desk.room.feeds.archive(feed, None)
    rows = read_archive(await desk.room.storehouse.find(feed, row.name))
    _, head = next(rows)
    return head, dict(rows)


def apply(copy, changes):
    for change in changes:
        fields = {
            name: value for name, value in change.items() if name not in {"identifier", "changeType", "changedAt"}
        }
        if change["changeType"] == "removed":
            del copy[change["identifier"]]
        else:
            copy[change["identifier"]] = fields


async def walk(desk, since, size=3):
    """Every page of a window; returns the changes and the `until` of the last page."""
    found, page = [], 1
    while True:
        answer = await desk.changes(since, page=page, size=size)
        found += answer["changes"]
        if page >= answer["totalPages"]:
            return found, answer["until"]
        page += 1


async def test_k1_an_archive_is_the_whole_list_and_says_from_where_to_read_on(desk):
    await desk.publish(range(1, 21))
    head, copy = await bootstrap(desk)
    assert len(copy) == int(head["count"]) == 20
    assert head["documentType"] == "Invoice"
    feed = await desk.state()
    assert (head["cursor"], head["stateHash"]) == (str(feed.head), feed.state_hash)
    await desk.publish(range(2, 22))
    changes, _ = await walk(desk, head["until"])
    apply(copy, changes)
    assert set(copy) == {f"{number:010d}" for number in range(2, 22)}


async def test_k2_until_becomes_the_next_since_and_nothing_is_lost_or_doubled(desk):
    await desk.publish(range(1, 31))
    head, copy = await bootstrap(desk)
    since, seen = head["until"], []
    for step in range(1, 9):
        await desk.publish(range(1 + step, 31 + 2 * step), title="UNVAN" if step % 2 else "YENİ UNVAN")
        changes, since = await walk(desk, since)
        seen += [(change["identifier"], change["changedAt"]) for change in changes]
        apply(copy, changes)
    assert len(seen) == len(set(seen))
    _, whole = await bootstrap(desk)
    assert copy == whole


async def test_k3_an_empty_answer_moves_since_on(desk):
    first = await desk.publish(range(1, 21))
    await desk.sync()
    answer = await desk.changes(first.feeds["einvoice"].until)
    assert answer["totalCount"] == answer["totalPages"] == 0
    assert answer["until"] > first.feeds["einvoice"].until


async def test_k4_gone_says_where_to_start_again(desk):
    await desk.publish(range(1, 21))
    with pytest.raises(Gone) as gone:
        await desk.changes(desk.ago(days=31))
    assert gone.value.location == "/api/v1/einvoice/archives/latest"
    head, _ = await bootstrap(desk)
    assert (await desk.changes(head["until"]))["totalCount"] == 0


async def test_k5_a_poll_between_two_syncs_costs_nothing_and_changes_nothing(desk):
    report = await desk.publish(range(1, 21))
    since = report.feeds["einvoice"].until
    answers = [await desk.changes(since) for _ in range(5)]
    assert all(answer == answers[0] for answer in answers)
    assert answers[0]["until"] == since


async def test_k6_all_pages_together_are_the_window_each_change_once(desk):
    await desk.publish(range(1, 11))
    since = desk.now()
    await desk.publish(range(1, 61))
    for size in (1, 7, 25, 50, 1000):
        changes, _ = await walk(desk, since, size)
        assert sorted(change["identifier"] for change in changes) == [f"{number:010d}" for number in range(11, 61)]
    beyond = await desk.changes(since, page=99, size=25)
    assert (beyond["changes"], beyond["totalCount"], beyond["totalPages"]) == ([], 50, 2)


async def test_k6_pages_of_a_window_stay_the_same_while_new_syncs_come(desk):
    await desk.publish(range(1, 11))
    since = desk.now()
    await desk.publish(range(1, 31))
    first = await desk.changes(since, size=10)
    await desk.publish(range(1, 41))
    rest = [await desk.changes(since, first["until"], page, 10) for page in (1, 2)]
    assert rest[0] == first
    assert [answer["totalCount"] for answer in rest] == [20, 20]


async def test_k7_the_same_question_has_the_same_answer(desk):
    await desk.publish(range(1, 11))
    since = desk.now()
    await desk.publish(range(2, 15))
    answer = await desk.changes(since)
    desk.clock.advance(3600)
    assert await desk.changes(since) == answer


async def test_a_without_a_bootstrap_the_changes_within_retention_are_answered(desk):
    await desk.publish(range(1, 21))
    await desk.publish(range(1, 22))
    assert (await desk.changes(desk.ago(days=9)))["totalCount"] == 1


async def test_b_before_the_retention_window_is_gone(desk):
    await desk.publish(range(1, 21))
    assert (await desk.changes(desk.ago(days=29)))["totalCount"] == 0
    with pytest.raises(Gone):
        await desk.changes(desk.ago(days=60))


async def test_c_a_sync_that_ends_in_the_middle_leaves_nothing_to_see(desk):
    from ulak.changes.syncing import lease

    await desk.publish(range(1, 21))
    since, before = desk.now(), await desk.state()
    begun = await desk.ulak.store.write(lease.take, "gib", 77, lambda _tx, _job: False)
    from ulak.changes.pipeline.differ import Delta

    rows = [Delta("001", 1, b"h", "c", None, "{}", "t")]
    above = list(enumerate(rows, before.head_pos + 1))
    await desk.ulak.store.write(lease.append, above, held=begun, feed="einvoice", sync=77)
    assert await desk.rows() == 20 + 1
    assert (await desk.changes(since))["totalCount"] == 0
    assert await desk.state() == before
    report = await desk.publish(range(1, 23))
    assert report.verdict == "published"
    assert [one["identifier"] for one in (await desk.changes(since))["changes"]] != ["1"]
    assert (await desk.changes(since))["totalCount"] == 2


async def test_d_after_25_days_away_the_changes_are_there_after_35_they_are_gone(desk):
    report = await desk.publish(range(1, 21))
    since = report.feeds["einvoice"].until
    await desk.publish(range(1, 22))
    desk.clock.advance(25 * 86_400)
    assert (await desk.changes(since))["totalCount"] == 1
    desk.clock.advance(10 * 86_400)
    with pytest.raises(Gone):
        await desk.changes(since)


async def test_e_the_removal_guard_keeps_the_records_and_tells_nobody_of_removals(desk):
    await desk.publish(range(1, 21))
    since = desk.now()
    report = await desk.publish(range(11, 21))
    assert report.status == "partial"
    assert (await desk.state()).count == 20
    assert (await desk.changes(since))["totalCount"] == 0


async def test_f_of_two_workers_one_syncs_and_the_other_is_partial(desk):
    desk.lay_simple(range(1, 21))
    found = await asyncio.gather(*(desk.room.start("gib") for _ in range(4)))
    assert sorted(one.status for one in found) == ["partial", "partial", "partial", "running"]
    await drain(desk.ulak)
    assert (await desk.state()).count == 20


async def test_faq_the_changelog_is_empty_after_the_first_sync(desk):
    await desk.publish(range(1, 21))
    assert (await desk.changes(desk.ago(days=1)))["totalCount"] == 0


async def test_faq_each_document_type_is_merged_of_both_files_and_compared_by_itself(desk):
    pk, gb = simple(range(1, 21))
    desk.lay(pk, gb)
    await desk.sync()
    since = desk.now()
    documents = {**pk[1].documents, "DespatchAdvice": [Alias("urn:mail:other@x.example")]}
    desk.lay([pk[0], replace(pk[1], documents=documents), *pk[2:]], gb)
    await desk.sync()
    assert (await desk.changes(since))["totalCount"] == 0
    (change,) = (await desk.changes(since, feed="edespatch"))["changes"]
    assert (change["identifier"], change["changeType"]) == ("0000000002", "modified")
    merged = await desk.room.get("einvoice", "0000000002")
    assert [one["type"] for one in merged["aliases"]] == ["GB", "PK"]


async def test_faq_an_unchanged_content_hash_is_no_modification_when_that_is_compared(make):
    async with make(changes__compare="seed") as desk:
        await desk.publish(range(1, 21), title="Unvan")
        since = desk.now()
        report = await desk.publish(range(1, 21), title="UNVAN")
        assert report.verdict == "unchanged"
        assert (await desk.changes(since))["totalCount"] == 0


async def test_faq_by_default_every_published_field_counts(desk):
    await desk.publish(range(1, 21), title="Unvan")
    report = await desk.publish(range(1, 21), title="UNVAN")
    assert report.feeds["einvoice"].modified == 20


async def test_faq_a_removed_record_is_null_and_detail_says_what_it_was(desk):
    await desk.publish(range(1, 21))
    since = desk.now()
    await desk.publish(range(2, 21))
    (change,) = (await desk.changes(since))["changes"]
    assert change == {
        "identifier": "0000000001",
        "changeType": "removed",
        "changedAt": change["changedAt"],
        "title": None,
        "accountType": None,
        "type": None,
        "firstCreationTime": None,
        "aliases": None,
    }
    (detailed,) = (await desk.changes(since, detail=True))["changes"]
    assert detailed["before"]["title"] == "UNVAN 1"
    assert detailed["reason"] == "left-list"
    assert detailed["cause"] == "source"


async def test_faq_stamps_are_of_istanbul_and_do_not_depend_on_anybodys_clock(desk):
    report = await desk.publish(range(1, 21))
    assert report.feeds["einvoice"].until == "2027-01-15T11:01:00"  # 08:01 UTC
    answer = await desk.changes("2027-01-15T08:00:30Z")
    assert answer["until"] == "2027-01-15T11:01:00"


async def test_faq_a_question_reads_the_rows_of_its_page_and_no_others(desk, monkeypatch):
    await desk.publish(range(1, 21))
    since = desk.now()
    await desk.publish(range(1, 101))
    asked = []
    read = records.read_versions

    def watched(tx, feed, start, end, **given):
        found = read(tx, feed, start, end, **given)
        asked.append((end - start, len(found)))
        return found

    monkeypatch.setattr(records, "read_versions", watched)
    for page in (1, 8, 9):
        assert (await desk.changes(since, page=page, size=10))["totalCount"] == 80
    assert asked == [(10, 10), (10, 10), (0, 0)]


async def test_faq_a_shorter_retention_holds_at_once(kept_address, tmp_path, clock):
    async with opened(kept_address, tmp_path, clock) as desk:
        await desk.publish(range(1, 21))
        since = desk.now()
        await desk.publish(range(1, 22))
        clock.advance(10 * 86_400)
        await desk.publish(range(1, 23))
        assert (await desk.changes(since))["totalCount"] == 2
    async with opened(kept_address, tmp_path, clock, changes__retention_days=5) as desk:
        with pytest.raises(Gone):
            await desk.changes(since)
        await desk.publish(range(1, 24))
    async with opened(kept_address, tmp_path, clock, changes__retention_days=365) as desk:
        with pytest.raises(Gone):  # it was pruned meanwhile
            await desk.changes(since)


async def test_a_quiet_source_never_makes_a_bootstrap_loop(desk):
    await desk.publish(range(1, 21))
    await desk.publish(range(1, 22))
    for _ in range(3):
        desk.clock.advance(20 * 86_400)
        await desk.sync()
    head, _ = await bootstrap(desk)
    assert (await desk.changes(head["until"]))["totalCount"] == 0


async def test_before_the_first_sync_nothing_is_known(desk):
    with pytest.raises(Unavailable, match="never synced"):
        await desk.changes(desk.now())


async def test_a_poll_during_a_sync_loses_nothing(desk):
    """The seed's own defect: until was now, and rows committed later had an earlier stamp."""
    await desk.publish(range(1, 21))
    since = desk.now()
    desk.lay(*simple(range(1, 41)))
    desk.clock.advance(5)
    await desk.room.start("gib")
    during = []
    while len(during) < 50:
        during.append(await desk.changes(since))
        await asyncio.sleep(0)
    await drain(desk.ulak)
    last = during[-1]
    found = list(last["changes"]) if last["totalCount"] else []
    rest, _ = await walk(desk, last["until"])
    assert len({one["identifier"] for one in [*found, *rest]}) == 20
    assert len(found) + len(rest) == 20
