"""The routes, as somebody else's client sees them: paths, fields, statuses and headers."""

from __future__ import annotations

import asyncio
import gzip
from xml.etree import ElementTree as ET

import pytest
import yarl

from tests.changes.conftest import opened, served_over
from ulak.changes import records
from ulak.errors import Unavailable
from ulak.http.rate import Rates
from ulak.testing import drain

CHANGE = {"identifier", "changeType", "changedAt", "title", "accountType", "type", "firstCreationTime", "aliases"}
DETAIL = {"before", "changedFields", "cursor", "aliasChanges", "reason", "cause", "contentHash"}
PAGE = {"changes", "totalCount", "page", "pageSize", "totalPages", "until"}


async def test_the_answer_has_exactly_the_seeds_fields(door):
    await door.desk.publish(range(1, 21))
    since = door.desk.now()
    report = await door.desk.publish(range(2, 22))
    for feed in ("einvoice", "edespatch"):
        answer = await door.get(f"/api/v1/{feed}/changes?since={since}")
        assert answer.status == 200
        assert set(answer.body) == PAGE
        assert all(set(change) == CHANGE for change in answer.body["changes"])
        assert answer.headers["x-last-sync-at"] == report.feeds[feed].until
    added = next(
        one
        for one in (await door.get(f"/api/v1/einvoice/changes?since={since}")).body["changes"]
        if one["changeType"] == "added"
    )
    assert added == {
        "identifier": "0000000021",
        "changeType": "added",
        "changedAt": report.feeds["einvoice"].until,
        "title": "UNVAN 21",
        "accountType": "OZELENTEGRASYON",
        "type": "OZEL",
        "firstCreationTime": "2019-05-02T10:11:12",
        "aliases": [
            {"alias": "urn:mail:gb21@x.example", "type": "GB", "creationTime": "2023-07-22T13:58:28"},
            {"alias": "urn:mail:pk21@x.example", "type": "PK", "creationTime": "2023-07-22T13:58:28"},
        ],
    }
    detailed = (await door.get(f"/api/v1/einvoice/changes?since={since}&detail=true")).body["changes"]
    assert all(set(change) == CHANGE | DETAIL for change in detailed)


async def test_since_may_have_a_blank_or_an_offset(door):
    await door.desk.publish(range(1, 21))
    for text in (
        "2027-01-15%2010:00:00",
        "2027-01-15T07:00:00Z",
        "2027-01-15T10:00:00%2B03:00",
        "2027-01-15T10:00:00+03:00",
    ):
        assert (await door.get(f"/api/v1/einvoice/changes?since={text}")).status == 200


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("", "since"),
        ("since=", "since"),
        ("since=yesterday", "since"),
        ("since=2027-01-15T10:00:00&until=2027-01-15T09:00:00", "until"),
        ("since=2027-01-15T10:00:00&until=x", "until"),
        ("since=2027-01-15T10:00:00&page=0", "page"),
        ("since=2027-01-15T10:00:00&page=a", "page"),
        ("since=2027-01-15T10:00:00&pageSize=0", "pageSize"),
        ("since=2027-01-15T10:00:00&pageSize=1001", "pageSize"),
        ("since=2027-01-15T10:00:00&colour=red", "colour"),
    ],
)
async def test_a_wrong_parameter_is_named(door, query, name):
    await door.desk.publish(range(1, 3))
    answer = await door.get(f"/api/v1/einvoice/changes?{query}")
    assert answer.status == 400
    assert answer.body["error"] == "invalid"
    assert [one["field"] for one in answer.body["fields"]] == [name]
    assert name in answer.body["message"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "einvoice/changes?since=2027-01-15T10:00:00", 200),
        ("GET", "einvoice/changes", 400),
        ("GET", "einvoice/changes?since=2020-01-15T10:00:00", 410),
        ("GET", "einvoice/archives/latest", 200),
        ("GET", "einvoice/0000000001", 200),
        ("GET", "einvoice/nobody", 404),
        ("GET", "nobody/changes?since=2027-01-15T10:00:00", 404),
        ("GET", "einvoice/no/such/route", 404),
        ("DELETE", "einvoice/changes", 405),
        ("POST", "einvoice/batch", 400),
        ("GET", "status", 200),
    ],
)
async def test_every_answer_says_when_its_feed_was_last_published(door, method, path, status):
    report = await door.desk.publish(range(1, 3))
    async with door.served.session.request(method, f"{door.served.address}/api/v1/{path}") as answer:
        assert answer.status == status
        assert answer.headers["X-Last-Sync-At"] == report.feeds["einvoice"].until


REFUSED = {
    "unknown key": (401, {"headers": {"authorization": "Bearer nobody"}}),
    "no scope": (403, {}),
    "a large body": (413, {"method": "POST", "data": b"large"}),
    "too often": (429, {}),
    "too many at once": (503, {}),
    "it stops": (503, {}),
}


@pytest.mark.parametrize("why", REFUSED)
async def test_a_refusal_at_the_door_says_it_too_and_reads_nothing(door, monkeypatch, why):
    url, guard = f"{door.served.address}/api/v1/edespatch/changes", door.served.door.guard
    status, given = REFUSED[why]
    options = {"method": "GET", **given}
    if why == "no scope":
        options["headers"] = {"authorization": f"Bearer {await door.served.make_key('notify')}"}
    if why == "too often":
        monkeypatch.setattr(guard, "_rates", Rates(1e-9, door.desk.clock))
        async with door.served.session.get(url):
            pass
    if why == "too many at once":
        monkeypatch.setattr(guard, "_most_at_once", 0)
    if why == "a large body":
        monkeypatch.setattr(guard, "max_body", 4)
    guard.stopping = why == "it stops"
    async with door.served.session.request(url=url, **options) as answer:
        assert (answer.status, answer.headers.get("X-Last-Sync-At")) == (status, None)
    report = await door.desk.publish(range(1, 3))
    reads, read = [], door.desk.ulak.store.read
    monkeypatch.setattr(door.desk.ulak.store, "read", lambda work, *given: reads.append(work) or read(work, *given))
    async with door.served.session.request(url=url, **options) as answer:
        assert (answer.status, answer.headers.get("X-Last-Sync-At")) == (status, report.feeds["edespatch"].until)
    assert (records.read_feeds in reads) == (why == "no scope")  # that caller has a key, and was let in


async def test_an_answer_says_it_while_the_store_is_out_of_reach(door, monkeypatch):
    report = await door.desk.publish(range(1, 3))

    async def fail(*_):
        raise Unavailable("the store does not answer")

    monkeypatch.setattr(door.desk.ulak.store, "read", fail)
    answer = await door.get("/api/v1/einvoice/buckets")
    assert (answer.status, answer.headers["x-last-sync-at"]) == (503, report.feeds["einvoice"].until)


async def test_gone_has_its_own_form(door):
    await door.desk.publish(range(1, 21))
    answer = await door.get(f"/api/v1/einvoice/changes?since={door.desk.ago(days=31)}")
    assert answer.status == 410
    assert set(answer.body) == {"error", "message", "reason", "oldest", "head", "bootstrap"}
    assert (answer.body["error"], answer.body["reason"]) == ("gone", "expired")
    assert answer.body["bootstrap"] == answer.headers["Location"] == "/api/v1/einvoice/archives/latest"


async def test_before_the_first_sync_it_is_503(door):
    for path in ("changes?since=2027-01-15T10:00:00", "log", "archives/latest", "0000000001", "buckets"):
        answer = await door.get(f"/api/v1/einvoice/{path}")
        assert (answer.status, answer.body["error"]) == (503, "unavailable")
    assert (await door.get("/api/v1/nobody/changes?since=2027-01-15T10:00:00")).status == 404


async def test_a_sync_over_http(door):
    door.desk.lay_simple(range(1, 21))
    begun = await door.post("/api/changes/gib/sync")
    assert (begun.status, set(begun.body), begun.body["status"]) == (202, {"syncId", "status"}, "running")
    await drain(door.desk.ulak)
    found = await door.get(f"/api/changes/gib/syncs/{begun.body['syncId']}")
    assert set(found.body) == {"syncId", "status", "verdict", "error", "seconds", "feeds"}
    assert set(found.body["feeds"]["einvoice"]) == {
        "added",
        "modified",
        "removed",
        "withheld",
        "count",
        "initial",
        "cursor",
        "until",
        "stateHash",
    }
    listed = (await door.get("/api/changes/gib/syncs")).body
    assert [one["syncId"] for one in listed["items"]] == [begun.body["syncId"]]
    assert (await door.get("/api/changes/nobody/syncs")).status == 404
    assert (await door.post("/api/changes/nobody/sync")).status == 404


async def test_two_syncs_at_once_over_http(door):
    door.desk.lay_simple(range(1, 21))
    answers = await asyncio.gather(*(door.post("/api/changes/gib/sync") for _ in range(3)))
    assert sorted(answer.status for answer in answers) == [200, 200, 202]
    assert len({answer.body["syncId"] for answer in answers}) == 1
    assert {answer.body["status"] for answer in answers if answer.status == 200} == {"partial"}
    await drain(door.desk.ulak)


async def test_approve_and_reject_over_http(door):
    await door.desk.publish(range(1, 21))
    held = await door.desk.publish(range(4, 21))
    path = f"/api/changes/gib/syncs/{held.sync_id}"
    assert (await door.get(f"{path}/preview")).body["feeds"]["einvoice"]["removed"] == 3
    assert (await door.post(f"{path}/approve", {"ceiling": 2})).status == 409
    assert (await door.post(f"{path}/approve", {})).status == 400
    approved = await door.post(f"{path}/approve", {"ceiling": 3})
    assert (approved.status, set(approved.body)) == (202, {"syncId"})
    await drain(door.desk.ulak)
    assert (await door.get(f"/api/changes/gib/syncs/{approved.body['syncId']}")).body["verdict"] == "published"
    assert (await door.post(f"{path}/reject")).status == 409


async def test_an_archive_has_ranges_an_etag_and_its_cursor(door):
    report = await door.desk.publish(range(1, 21))
    url = door.served.address + "/api/v1/einvoice/archives/latest"
    async with door.served.session.get(url) as answer:
        whole, headers = await answer.read(), answer.headers
    root = ET.fromstring(gzip.decompress(whole))
    feed = report.feeds["einvoice"]
    assert root.tag == "GibUserList"
    assert dict(root.attrib) == {
        "documentType": "Invoice",
        "generatedAt": door.desk.now(),
        "count": "20",
        "cursor": feed.cursor,
        "until": feed.until,
        "stateHash": feed.state_hash,
    }
    user = next(one for one in root if one.findtext("Identifier") == "0000000002")
    assert [element.tag for element in user] == [
        "Identifier",
        "Title",
        "AccountType",
        "Type",
        "FirstCreationTime",
        "Aliases",
    ]
    assert [[part.tag for part in alias] for alias in user.find("Aliases")] == [["Name", "Type", "CreationTime"]] * 2
    assert headers["X-Ulak-Cursor"] == feed.cursor
    assert headers["x-last-sync-at"] == feed.until
    async with door.served.session.get(url, headers={"Range": "bytes=10-19"}) as answer:
        assert (answer.status, await answer.read()) == (206, whole[10:20])
    async with door.served.session.get(url, headers={"If-None-Match": headers["ETag"]}) as answer:
        assert (answer.status, await answer.read()) == (304, b"")
    listed = (await door.get("/api/v1/einvoice/archives")).body["items"]
    assert [one["cursor"] for one in listed] == [feed.cursor]
    async with door.served.session.get(url.replace("latest", listed[0]["fileName"])) as answer:
        assert await answer.read() == whole
    assert (await door.get("/api/v1/einvoice/archives/nothing.xml.gz")).status == 404


async def test_just_after_a_sync_its_archive_is_the_latest(address, tmp_path):
    async with opened(address, tmp_path, None) as desk, served_over(desk) as door:
        for last in (20, 30):
            desk.lay_simple(range(1, last))
            report = await desk.room.sync("gib")
            async with door.served.session.get(f"{door.served.address}/api/v1/einvoice/archives/latest") as answer:
                assert (answer.status, answer.headers["X-Ulak-Cursor"]) == (200, report.feeds["einvoice"].cursor)


async def test_records_one_by_one_in_a_batch_and_as_they_were(door):
    first = await door.desk.publish(range(1, 21))
    await door.desk.publish(range(2, 21), title="YENİ")
    then, now = first.feeds["einvoice"].until, door.desk.now()
    assert (await door.get("/api/v1/einvoice/0000000002")).body["title"] == "YENİ 2"
    assert (await door.get(f"/api/v1/einvoice/0000000002?at={then}")).body["title"] == "UNVAN 2"
    assert (await door.get(f"/api/v1/einvoice/0000000001?at={then}")).status == 200
    assert (await door.get(f"/api/v1/einvoice/0000000001?at={now}")).status == 404
    assert (await door.get(f"/api/v1/einvoice/0000000001?at={door.desk.ago(days=300)}")).status == 404
    found = await door.post("/api/v1/einvoice/batch", {"identifiers": ["0000000003", "nobody", "0000000002"]})
    assert [one["identifier"] for one in found.body["items"]] == ["0000000003", "0000000002"]
    assert found.body["notFound"] == ["nobody"]
    many = await door.post("/api/v1/einvoice/batch", {"identifiers": [str(number) for number in range(101)]})
    assert many.status == 400


async def test_any_identifier_is_one_encoded_segment_and_a_routes_word_is_found_by_batch(make, tmp_path):
    path = tmp_path / "shops.csv"
    path.write_text("id,name\na/b?c,Köşe\nchanges,Değişim\n")
    shops = {"name": "shops", "format": "csv", "key": "id", "fields": {"title": "name"}, "url": path.as_uri()}
    async with make(changes__registry=(shops,)) as desk, served_over(desk) as door:
        await desk.sync("shops")
        url = yarl.URL(f"{door.served.address}/api/v1/shops/a%2Fb%3Fc", encoded=True)
        async with door.served.session.get(url) as answer:
            assert await answer.json() == {"identifier": "a/b?c", "title": "Köşe"}
        assert (await door.get("/api/v1/shops/changes")).body["fields"][0]["field"] == "since"
        found = (await door.post("/api/v1/shops/batch", {"identifiers": ["changes", "nobody"]})).body
        assert found == {"items": [{"identifier": "changes", "title": "Değişim"}], "notFound": ["nobody"]}
        changes = (await door.get(f"/api/v1/shops/log?after={(await desk.state('shops')).head}")).body
        assert changes["changes"] == []


async def test_search_is_turkish_and_by_pages(door):
    await door.desk.publish(range(1, 31), title="IŞIK İNŞAAT")
    found = await door.get("/api/v1/einvoice?search=%C4%B1%C5%9F%C4%B1k%20in%C5%9F&page=2&pageSize=25")
    assert (found.body["totalCount"], found.body["totalPages"], len(found.body["items"])) == (30, 2, 5)
    upper = await door.get("/api/v1/einvoice?search=I%C5%9EIK")
    assert upper.body["totalCount"] == 30
    assert (await door.get("/api/v1/einvoice?search=isik")).body["totalCount"] == 0


async def test_the_log_by_cursor(door):
    first = await door.desk.publish(range(1, 21))
    cursor = first.feeds["einvoice"].cursor
    second = await door.desk.publish(range(2, 25))
    third = await door.desk.publish(range(3, 25), title="YENİ")
    page = (await door.get(f"/api/v1/einvoice/log?after={cursor}&limit=3")).body
    assert set(page) == {"changes", "cursor", "more", "stateHash"}
    assert (len(page["changes"]), page["more"], page["stateHash"]) == (3, True, None)
    rest = (await door.get(f"/api/v1/einvoice/log?after={page['cursor']}&limit=1000")).body
    assert (rest["more"], rest["cursor"]) == (False, third.feeds["einvoice"].cursor)
    assert rest["stateHash"] == third.feeds["einvoice"].state_hash
    whole = (await door.get(f"/api/v1/einvoice/log?after={cursor}&limit=1000")).body["changes"]
    assert whole == page["changes"] + rest["changes"]
    collapsed = (await door.get(f"/api/v1/einvoice/log?after={cursor}&limit=1000&collapse=true")).body["changes"]
    assert len({one["identifier"] for one in collapsed}) == len(collapsed) < len(whole)
    some = (await door.get(f"/api/v1/einvoice/log?after={cursor}&keys=0000000002,0000000022")).body["changes"]
    assert [(one["identifier"], one["changeType"]) for one in some if one["identifier"] == "0000000002"] == [
        ("0000000002", "removed")
    ]
    assert {one["identifier"] for one in some} == {"0000000002", "0000000022"}
    assert second.feeds["einvoice"].cursor != cursor


@pytest.mark.parametrize(
    ("cursor", "reason"), [("ffffffff-1", "epoch"), ("{epoch}-999999", "unknown"), ("{epoch}-1", "expired")]
)
async def test_a_cursor_that_does_not_fit_is_gone(door, cursor, reason):
    report = await door.desk.publish(range(1, 21))
    epoch = report.feeds["einvoice"].cursor.partition("-")[0]
    answer = await door.get(f"/api/v1/einvoice/log?after={cursor.format(epoch=epoch)}")
    assert (answer.status, answer.body["reason"]) == (410, reason)
    assert (await door.get("/api/v1/einvoice/log?after=nonsense")).status == 400


async def test_buckets_prove_and_mend_a_copy(door):
    await door.desk.publish(range(1, 101))
    sums = (await door.get("/api/v1/einvoice/buckets")).body
    assert len(sums["buckets"]) == 256
    from ulak.changes.fields import record_hash
    from ulak.changes.state import Sums, bucket_hashes, to_key

    for number in (0, 17, 255):
        bucket = (await door.get(f"/api/v1/einvoice/buckets/{number}")).body
        total = Sums()
        for item in bucket["items"]:
            identifier = item.pop("identifier")
            total.add(to_key(identifier), record_hash(identifier, item))
        assert bucket_hashes(total.packed())[number] == bucket["hash"] == sums["buckets"][number]
    assert (await door.get("/api/v1/einvoice/buckets/256")).status == 404


async def test_the_stream_gives_changes_with_their_cursors(address, tmp_path):
    async with opened(address, tmp_path, None) as desk, served_over(desk) as door:
        desk.lay_simple(range(1, 21))
        await desk.room.sync("gib")
        url = f"{door.served.address}/api/v1/einvoice/log/stream"
        async with asyncio.timeout(20), door.served.session.get(url) as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            await stream.content.readuntil(b"\n\n")
            desk.lay_simple(range(1, 23))
            report = await desk.room.sync("gib")
            events = [await stream.content.readuntil(b"\n\n") for _ in range(2)]
        assert all(b"event: change" in event for event in events)
        first = events[0].decode().split("\n")[0].removeprefix("id: ")
        headers = {"Last-Event-ID": first}
        async with asyncio.timeout(20), door.served.session.get(url, headers=headers) as stream:
            await stream.content.readuntil(b"\n\n")
            again = await stream.content.readuntil(b"\n\n")
        assert again == events[1]
        assert f"id: {report.feeds['einvoice'].cursor}".encode() in again
        waiting = asyncio.create_task(door.get(f"/api/v1/einvoice/log?after={report.feeds['einvoice'].cursor}&wait=20"))
        await asyncio.sleep(0)
        desk.lay_simple(range(1, 24))
        await desk.room.sync("gib")
        assert len((await waiting).body["changes"]) == 1


async def test_a_quiet_stream_says_that_it_is_still_there(door):
    await door.desk.publish(range(1, 5))
    url = f"{door.served.address}/api/v1/einvoice/log/stream"
    async with asyncio.timeout(20), door.served.session.get(url) as stream:
        assert await stream.content.readuntil(b"\n\n") == b": from here\n\n"
        beat = asyncio.ensure_future(stream.content.readuntil(b"\n\n"))
        while not beat.done():
            door.desk.clock.advance(1)
            await asyncio.wait([beat], timeout=0.01)
        assert await beat == b": still here\n\n"


async def test_the_status_of_everything(door):
    await door.desk.publish(range(1, 21))
    found = (await door.get("/api/v1/status")).body
    assert found["feeds"]["einvoice"]["count"] == 20
    assert found["registries"]["gib"]["lastSync"]["verdict"] == "published"


async def test_scopes_open_reading_and_admin_opens_writing(door):
    await door.desk.publish(range(1, 3))
    reader, other = await door.served.make_key("changes"), await door.served.make_key("notify")
    assert (await door.get("/api/v1/einvoice/0000000001", key=reader)).status == 200
    assert (await door.get("/api/v1/einvoice/0000000001", key=other)).status == 403
    assert (await door.post("/api/changes/gib/sync", key=reader)).status == 403


async def test_a_watch_that_makes_jobs_needs_the_scope_for_them(door):
    reader, both = await door.served.make_key("changes"), await door.served.make_key("changes", "jobs")
    path = "/api/v1/einvoice/watches"
    assert (await door.post(path, {"kind": "mine.added"}, key=reader)).status == 403
    assert (await door.post(path, {"kind": "mine.added"}, key=both)).status == 201
    assert (await door.post(path, {"kind": "notify.email"}, key=both)).status == 403
    assert (await door.post(path, {"webhook": "https://x.example/h?token=1"}, key=reader)).status == 201
    listed = (await door.get(path, key=reader)).body["items"]
    assert [one["webhook"] for one in listed] == [None, "https://x.example/h?***"]


async def test_half_a_character_is_refused(door):
    await door.desk.publish(range(1, 3))
    answer = await door.post("/api/v1/einvoice/batch", {"identifiers": ["\ud800"]})
    assert (answer.status, answer.body["fields"][0]["field"]) == (400, "identifiers")
