"""At a bound over HTTP: nobody waits without limit, a request says how long it waits, and a full bound is no secret."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from tests.api.serving import serving
from ulak.http.prefer import preferred_wait

SMS = {"notificationType": "SMS", "recipient": "+905551112233", "body": "hello"}
LATER = {**SMS, "sendAt": "2030-01-31T10:30:00Z"}
FULL = {"notify.capacity": 1}


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(b"wait=5", 5), (b"respond-async, wait=10", 10), (b'Wait = "0"', 0), (b"wait=soon", None), (b"await=3", None)],
)
def test_a_preference_is_read_or_ignored(value, seconds):
    assert preferred_wait({"headers": [(b"host", b"x"), (b"prefer", value)]}) == seconds


async def test_a_request_that_prefers_not_to_wait_is_refused_at_once_and_told_when_to_come_back():
    async with serving(work=False, **FULL) as served:
        await served.post("/api/notifications", SMS)
        answer = await served.post("/api/notifications", SMS, headers={"Prefer": "wait=0"})
        assert (answer.status, answer.headers["Retry-After"]) == (429, "30")  # nothing here comes to an end
        assert "its bound of 1 active jobs" in answer.body["message"]


async def test_by_default_a_request_waits_for_some_seconds_and_is_then_refused():
    async with serving(work=False, **FULL, **{"notify.wait_seconds": 0.05}) as served:
        await served.post("/api/notifications", SMS)
        assert served.ulak.settings.notify.admission == "wait"
        assert (await served.post("/api/notifications", SMS)).status == 429


async def test_a_blocking_policy_has_a_limit_over_http(monkeypatch):
    monkeypatch.setattr("ulak.spine.patience.MAX_WAIT_SECONDS", 0.05)

    def prepare(ulak):
        @ulak.handles("mail", capacity=1)
        async def mail(_): ...

    async with serving(prepare, work=False) as served:
        await served.enqueue()
        assert (await served.post("/api/jobs", {"kind": "mail"})).status == 429
        answer = await served.post("/api/jobs", {"kind": "mail"}, headers={"Prefer": "wait=600"})
        assert answer.status == 429


async def test_a_test_event_waits_no_longer_than_any_other_request(monkeypatch):
    monkeypatch.setattr("ulak.spine.patience.MAX_WAIT_SECONDS", 0.05)
    hook = {"notificationType": "WEBHOOK", "recipient": "http://127.0.0.1:9/one", "body": "hello"}
    async with serving(work=False, **FULL, **{"notify.admission": "block"}) as served:
        await served.post("/api/notifications", hook)
        tested = served.post("/api/webhook-endpoints/test", {"url": "http://127.0.0.1:10/other"})
        assert (await asyncio.wait_for(tested, 10)).status == 429


async def test_what_is_for_later_is_taken_while_the_active_bound_is_full_and_others_wait():
    async with serving(work=False, **FULL) as served:
        await served.post("/api/notifications", SMS)
        waiting = asyncio.create_task(served.post("/api/notifications", SMS, headers={"Prefer": "wait=20"}))
        while not served.ulak.loops.gate._waiting:
            await asyncio.sleep(0.01)
        assert (await served.post("/api/notifications", LATER)).status == 202
        assert (await served.post("/api/notifications", {**SMS, "notificationType": "IN_APP"})).status == 202
        waiting.cancel()


async def test_a_full_bound_is_logged_once_and_named_by_readyz_which_is_still_ready():
    with capture_logs() as logs:
        async with serving(work=False, **FULL) as served:
            await served.post("/api/notifications", SMS)
            for _ in range(3):
                await served.post("/api/notifications", SMS, headers={"Prefer": "wait=0"})
            ready = await served.get("/readyz")
            assert (ready.status, ready.body["status"]) == (200, "ready")
            (reason,) = ready.body["reasons"]
            assert "notify.sms has reached its bound of 1 active jobs" in reason
            (job, *_) = await served.ulak.jobs.list(kind="notify.sms")
            await served.ulak.jobs.cancel(job.id)
            while (await served.get("/readyz")).body["reasons"]:
                await asyncio.sleep(0.05)
    told = [(line["event"], line["kind"], line["bound"]) for line in logs if line["event"].startswith("bound_")]
    assert told == [("bound_full", "notify.sms", "active"), ("bound_drained", "notify.sms", "active")]
