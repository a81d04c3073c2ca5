"""Jobs over HTTP: enqueue, look, cancel."""

from __future__ import annotations

import tracemalloc
from datetime import datetime

import pytest

from tests.api.serving import serving, with_deaths
from ulak import Retry
from ulak.clock import to_datetime


async def test_a_job_is_accepted_run_and_shown_with_its_timeline():
    async with serving(with_deaths) as served:
        identifier = await served.enqueue("mail", {"subject": 1}, priority="URGENT")
        job = await served.settled(identifier)
    assert (job["kind"], job["priority"], job["attempt"]) == ("mail", "URGENT", 1)
    assert [entry["word"] for entry in job["timeline"]] == ["accepted", "started", "done"]
    assert job["detail"] == {"sent": True}


async def test_ids_are_text_that_javascript_can_hold():
    async with serving() as served:
        identifier = await served.enqueue()
        assert isinstance(identifier, str)
        assert int(identifier) > 1 << 53
        assert (await served.get("/api/jobs")).body["jobs"][0]["id"] == identifier


async def test_everything_that_can_be_said_of_a_job_is_kept():
    async with serving(work=False) as served:
        due_at = to_datetime(served.ulak.clock.now() + 3_600_000)
        said = {
            "key": "order-7",
            "slots": 2,
            "dueAt": due_at.isoformat(),
            "expiresAt": "2091-01-01T00:00:00Z",
            "uniqueKey": "once",
            "continuation": "after",
            "onUncertain": "hold",
        }
        identifier = await served.enqueue("mail", [1, {"a": None}], **said)
        job = (await served.get(f"/api/jobs/{identifier}?reveal=true")).body
        assert await served.enqueue("mail", uniqueKey="once") == identifier
    assert job["payload"] == [1, {"a": None}]
    assert (job["status"], job["key"], job["uniqueKey"]) == ("deferred", "order-7", "once")
    assert (datetime.fromisoformat(job["dueAt"]), job["expiresAt"]) == (due_at, "2091-01-01T00:00:00Z")


async def test_a_listing_is_filtered_and_paged():
    async with serving(work=False) as served:
        ids = [await served.enqueue(kind) for kind in ("a", "b", "a", "a")]
        first = (await served.get("/api/jobs?kind=a&limit=2")).body
        assert [job["id"] for job in first["jobs"]] == [ids[3], ids[2]]
        rest = (await served.get(f"/api/jobs?kind=a&limit=2&before={first['before']}")).body
        assert [job["id"] for job in rest["jobs"]] == [ids[0]]
        assert rest["before"] is None
        assert (await served.get("/api/jobs?status=done")).body["jobs"] == []
        assert len((await served.get("/api/jobs?status=ready")).body["jobs"]) == 4


async def test_a_listing_reads_no_payloads():
    """A page of large jobs needs memory for their names only."""
    size = 200_000
    async with serving(work=False) as served:
        ids = [await served.enqueue(payload="x" * size) for _ in range(20)]
        for identifier in ids[:10]:
            await served.post(f"/api/jobs/{identifier}/cancel")
        tracemalloc.start()
        try:
            listed = (await served.get("/api/jobs")).body["jobs"]
            peak_bytes = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert (await served.get(f"/api/jobs/{ids[0]}?reveal=true")).body["payload"] == "x" * size
        assert [len(record.payload) for record in await served.ulak.jobs.list()] == [size] * 20
    assert [job["id"] for job in listed] == ids[::-1]
    assert peak_bytes < 5 * size


@pytest.mark.parametrize("query", ["status=gone", "limit=1001", "limit=x", "before=x", "before=-1"])
@pytest.mark.asyncio(loop_scope="module")
async def test_a_wrong_filter_is_refused(query, shared):
    assert (await shared.get(f"/api/jobs?{query}")).status == 400


async def test_a_waiting_job_is_cancelled_at_once_and_only_once():
    async with serving(work=False) as served:
        identifier = await served.enqueue()
        assert (await served.post(f"/api/jobs/{identifier}/cancel")).body == {"id": identifier, "status": "cancelled"}
        assert (await served.post(f"/api/jobs/{identifier}/cancel")).status == 409


@pytest.mark.parametrize("identifier", ["1", "9999999999999999999"])
@pytest.mark.asyncio(loop_scope="module")
async def test_an_unknown_job_is_not_found(identifier, shared):
    assert (await shared.get(f"/api/jobs/{identifier}")).status == 404
    assert (await shared.post(f"/api/jobs/{identifier}/cancel")).status == 404


@pytest.mark.parametrize("identifier", ["x", "-1", "1.5", "12345678901234567890"])
@pytest.mark.asyncio(loop_scope="module")
async def test_what_is_no_id_is_refused(identifier, shared):
    assert (await shared.get(f"/api/jobs/{identifier}")).status == 400


async def test_the_instants_of_a_timeline_are_written_as_all_others():
    def prepare(ulak):
        @ulak.handles("later")
        async def later(job):
            return Retry(after_seconds=3600, reason="not yet")

    async with serving(prepare) as served:
        job = await served.settled(await served.enqueue("later"), "deferred")
        (until,) = [entry["detail"]["until"] for entry in job["timeline"] if "until" in entry["detail"]]
        assert until == job["dueAt"]
        revealed = (await served.get(f"/api/jobs/{job['id']}?reveal=true")).body
        assert revealed["timeline"] == job["timeline"]
