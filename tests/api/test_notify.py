"""Notifications over HTTP: accepted at once with the seed's answer, refused by field, found again, masked."""

from __future__ import annotations

import asyncio
import io
import re
import tracemalloc
from uuid import UUID

import msgspec
import pytest

from tests.api.serving import serving
from ulak import codec
from ulak.clock import to_datetime
from ulak.notify import records

SMS = {"notificationType": "SMS", "recipient": "+905551112233", "body": "Hello"}
QUICK = {f"channels.{name}.simulated_delay_seconds": 0 for name in ("email", "sms", "push")}


async def ended(served, identifier, status="DELIVERED"):
    """Follow a notification until it has the status; commits wake us."""
    async with asyncio.timeout(10):
        with served.ulak.loops.watching() as news:
            while True:
                news.clear()
                found = (await served.get(f"/api/notifications/{identifier}")).body
                if found["status"] == status:
                    return found
                await news.wait()


async def test_an_accepted_notification_is_answered_as_the_contract_says():
    async with serving(**QUICK) as served:
        answer = await served.post("/api/notifications", {**SMS, "priority": "HIGH", "metadata": {"campaignId": "123"}})
        assert answer.status == 202
        assert list(answer.body) == ["id", "status", "message", "submittedAt"]
        assert answer.body["status"] == "ACCEPTED"
        assert answer.body["message"] == "Notification submitted for processing"
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", answer.body["submittedAt"])
        assert str(UUID(answer.body["id"])) == answer.body["id"]
        found = await ended(served, answer.body["id"])
    assert [step["what"] for step in found["timeline"]] == ["accepted", "started", "done"]
    assert (found["attempts"], found["priority"], found["createdAt"]) == (1, "HIGH", answer.body["submittedAt"])


@pytest.mark.parametrize("kind", ["EMAIL", "SMS", "PUSH", "IN_APP"])
async def test_every_type_is_delivered(kind):
    async with serving(**QUICK) as served:
        request = {"notificationType": kind, "recipient": "ada@example.org", "subject": "S", "body": "B"}
        identifier = (await served.post("/api/notifications", request)).body["id"]
        assert (await ended(served, identifier))["notificationType"] == kind


WRONG = [
    ({}, {"notificationType", "recipient", "body"}),
    ({**SMS, "notificationType": "PIGEON"}, {"notificationType"}),
    ({**SMS, "notificationType": "sms"}, {"notificationType"}),
    ({**SMS, "recipient": "  "}, {"recipient"}),
    ({**SMS, "recipient": "a\nb"}, {"recipient"}),
    ({**SMS, "recipient": "x" * 2049}, {"recipient"}),
    ({**SMS, "notificationType": "EMAIL"}, {"recipient"}),
    ({**SMS, "notificationType": "WEBHOOK"}, {"recipient"}),
    ({**SMS, "notificationType": "WEBHOOK", "recipient": "ftp://example.org"}, {"recipient"}),
    ({**SMS, "body": " "}, {"body"}),
    ({**SMS, "body": "a\0b"}, {"body"}),
    ({**SMS, "body": "x" * 262_145}, {"body"}),
    ({**SMS, "subject": "a\r\nBcc: b"}, {"subject"}),
    ({**SMS, "html": "<b>"}, {"html"}),
    ({**SMS, "priority": "SOON", "onUncertain": "guess"}, {"priority", "onUncertain"}),
    ({**SMS, "orderKey": ""}, {"orderKey"}),
    ({**SMS, "sendAt": "2030-01-01T00:00:00"}, {"sendAt"}),
    ({**SMS, "sendAt": "2030-01-02T00:00:00Z", "expiresAt": "2030-01-01T00:00:00Z"}, {"expiresAt"}),
    ({**SMS, "template": "welcome"}, {"body"}),
    ({**SMS, "variables": {}}, {"variables"}),
    ({**SMS, "body": None, "template": "no-such"}, {"template"}),
    ({**SMS, "body": None, "template": "welcome", "variables": {}}, {"variables.name"}),
    ({**SMS, "body": 5, "recipient": [], "colour": "red"}, {"body", "recipient", "colour"}),
    ({**SMS, "metadata": []}, {"metadata"}),
    ({**SMS, "sendAt": "tomorrow"}, {"sendAt"}),
    ({**SMS, "sendAt": "9999-01-01T00:00:00Z"}, {"sendAt"}),
    ([], {""}),
    ("text", {""}),
    (None, {""}),
]


@pytest.mark.parametrize(("document", "fields"), WRONG)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_wrong_request_is_refused_with_every_field_named(shared, document, fields):
    answer = await shared.post("/api/notifications", document)
    assert answer.status == 400, answer.text
    assert {field["field"] for field in answer.body["fields"]} == fields
    assert all(field["message"] for field in answer.body["fields"])


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe", b'{"body": "\\ud800"}', b"[" * 5000, b"nul", b'{"a":1}x'])
@pytest.mark.asyncio(loop_scope="module")
async def test_what_is_no_json_is_refused(shared, data):
    for path in ("/api/notifications", "/api/notifications/batch"):
        answer = await shared.post(path, data=data, headers={"content-type": "application/json"})
        assert (answer.status, answer.body["error"]) == (400, "invalid"), answer.text


async def test_a_body_that_is_too_large_is_refused():
    async with serving(work=False, **{"http.max_body_bytes": 2000}) as served:
        answer = await served.post("/api/notifications", {**SMS, "body": "x" * 3000})
        assert (answer.status, answer.body["error"]) == (413, "too_large")


async def test_a_notification_that_is_nested_too_deeply_is_refused():
    metadata = {"deep": 1}
    for _ in range(200):
        metadata = {"deep": metadata}
    async with serving(work=False) as served:
        answer = await served.post("/api/notifications", {**SMS, "metadata": metadata})
        assert (answer.status, answer.body["error"]) == (400, "invalid")
        assert "100 levels" in answer.body["message"]


async def test_a_notification_too_large_for_the_store_is_refused():
    async with serving(work=False, **{"http.max_body_bytes": 10_000_000}) as served:
        large = msgspec.json.encode({**SMS, "metadata": {"x": "y" * 1_048_576}})
        answer = await served.post("/api/notifications", data=io.BytesIO(large))
        assert (answer.status, answer.body["error"]) == (413, "too_large")
        assert "larger than 1024 KiB" in answer.body["message"]
        batch = await served.post("/api/notifications/batch", data=io.BytesIO(b"[" + large + b"]"))
        assert [verdict["status"] for verdict in batch.body] == [413]


async def test_at_the_bound_it_is_refused_with_retry_after():
    async with serving(work=False, **{"notify.capacity": 1, "notify.admission": "reject"}) as served:
        await served.post("/api/notifications", SMS)
        answer = await served.post("/api/notifications", SMS)
        assert (answer.status, int(answer.headers["Retry-After"]) >= 1) == (429, True)


async def test_at_the_bound_a_waiting_policy_gives_up_after_its_time():
    policy = {"notify.capacity": 1, "notify.admission": "wait", "notify.wait_seconds": 0.05}
    async with serving(work=False, **policy) as served:
        await served.post("/api/notifications", SMS)
        assert (await served.post("/api/notifications", SMS)).status == 429


async def test_at_the_bound_a_blocking_policy_waits_for_capacity():
    async with serving(**{"notify.capacity": 1, "channels.sms.simulated_delay_seconds": 0.02}) as served:
        answers = await asyncio.gather(*(served.post("/api/notifications", SMS) for _ in range(5)))
        assert [answer.status for answer in answers] == [202] * 5


async def test_while_stopping_everything_is_answered_with_503():
    async with serving(work=False) as served:
        served.door.guard.stopping = True
        answer = await served.post("/api/notifications", SMS)
        assert (answer.status, "retry-after" in {name.lower() for name in answer.headers}) == (503, True)


async def test_a_producer_that_waits_at_the_bound_is_told_when_the_stop_comes():
    async with serving(work=False, **{"notify.capacity": 1}) as served:
        await served.post("/api/notifications", SMS)
        second = asyncio.create_task(served.post("/api/notifications", SMS))
        async with asyncio.timeout(10):
            while not any(served.ulak.loops.gate._waiting.values()):
                await asyncio.sleep(0)
        served.ulak.loops.gate.close()
        assert (await second).status == 503


async def test_a_batch_is_judged_item_by_item():
    async with serving(work=False, **{"notify.capacity": 2, "notify.admission": "reject"}) as served:
        items = [SMS, {**SMS, "priority": "SOON"}, 5, SMS, SMS]
        answer = await served.post("/api/notifications/batch", items)
        assert answer.status == 207
        assert [one["status"] for one in answer.body] == [202, 400, 400, 202, 429]
        assert answer.body[1]["problem"]["fields"][0]["field"] == "priority"
        assert {one["accepted"]["status"] for one in answer.body if "accepted" in one} == {"ACCEPTED"}
        assert len((await served.get("/api/notifications")).body["items"]) == 2


async def test_a_shorter_batch_under_the_same_key_is_a_conflict():
    async with serving(work=False) as served:
        headers = {"Idempotency-Key": "batch-1"}
        first = await served.post("/api/notifications/batch", [SMS, SMS], headers=headers)
        shorter = await served.post("/api/notifications/batch", [SMS], headers=headers)
        assert (first.status, shorter.status) == (207, 409)
        assert "another size" in shorter.body["message"]


async def test_a_batch_shares_commits(tmp_path):
    async with serving(work=False, store=f"sqlite:///{tmp_path}/ulak.db") as served:
        before = served.ulak.store.gauges()["commits_total"]
        answer = await served.post("/api/notifications/batch", [SMS] * 1000)
        assert {one["status"] for one in answer.body} == {202}
        assert served.ulak.store.gauges()["commits_total"] - before < 100


@pytest.mark.parametrize("items", [[], [SMS] * 1001])
@pytest.mark.asyncio(loop_scope="module")
async def test_a_batch_has_a_sensible_size(shared, items):
    assert (await shared.post("/api/notifications/batch", items)).status == 400


async def test_an_idempotency_key_answers_a_repeat_with_the_first_answer():
    async with serving(work=False) as served:
        key = {"Idempotency-Key": "order-7"}
        first = await served.post("/api/notifications", SMS, headers=key)
        again = await served.post("/api/notifications", SMS, headers=key)
        other = await served.post("/api/notifications", {**SMS, "body": "Bye"}, headers=key)
        assert (first.status, again.status, again.body) == (202, 202, first.body)
        assert (other.status, other.body["error"]) == (409, "conflict")
        assert len((await served.get("/api/notifications")).body["items"]) == 1


async def test_idempotency_keys_belong_to_their_api_key():
    async with serving(work=False) as served:
        ada, bob = await served.make_key("notify"), await served.make_key("notify")
        headers = {"Idempotency-Key": "order-7"}
        first = await served.post("/api/notifications", SMS, headers=headers, key=ada)
        other = await served.post("/api/notifications", {**SMS, "body": "Bye"}, headers=headers, key=bob)
        assert (first.status, other.status) == (202, 202)


async def test_listing_filters_and_pages():
    async with serving(**QUICK) as served:
        made = [(await served.post("/api/notifications", SMS)).body["id"] for _ in range(5)]
        for identifier in made:
            await ended(served, identifier)
        send_at = f"{to_datetime(served.ulak.clock.now() + 3_600_000):%Y-%m-%dT%H:%M:%SZ}"
        later = {**SMS, "notificationType": "PUSH", "sendAt": send_at}
        made.append((await served.post("/api/notifications", later)).body["id"])
        page = (await served.get("/api/notifications?limit=4")).body
        rest = (await served.get(f"/api/notifications?limit=4&before={page['nextBefore']}")).body
        assert [item["id"] for item in [*page["items"], *rest["items"]]] == made[::-1]
        assert rest["nextBefore"] is None
        scheduled = (await served.get("/api/notifications?status=SCHEDULED")).body["items"]
        assert [(item["id"], item["sendAt"]) for item in scheduled] == [(made[5], send_at)]
        assert len((await served.get("/api/notifications?notificationType=SMS&status=DELIVERED")).body["items"]) == 5


@pytest.mark.parametrize("query", ["status=GONE", "notificationType=PIGEON", "before=x", "limit=0", "limit=501"])
@pytest.mark.asyncio(loop_scope="module")
async def test_a_wrong_filter_is_told_by_field(shared, query):
    answer = await shared.get(f"/api/notifications?{query}")
    assert (answer.status, answer.body["fields"][0]["field"]) == (400, query.partition("=")[0])


async def test_a_reference_is_shown_and_found_and_a_person_in_it_is_masked():
    async with serving() as served:
        for reference in ("order-7", "ada@example.org"):
            await served.post("/api/notifications", {**SMS, "reference": reference})
        (found,) = (await served.get("/api/notifications?reference=order-7")).body["items"]
        assert found["reference"] == "order-7"
        (found,) = (await served.get("/api/notifications?reference=ada@example.org")).body["items"]
        assert found["reference"] == "a***@example.org"


async def test_cancel_and_resend_are_told_what_they_did():
    async with serving(work=False) as served:
        identifier = (await served.post("/api/notifications", SMS)).body["id"]
        answer = await served.post(f"/api/notifications/{identifier}/cancel")
        assert (answer.status, answer.body) == (200, {"id": identifier, "status": "CANCELLED"})
        assert (await served.post(f"/api/notifications/{identifier}/cancel")).status == 409
        assert (await served.post(f"/api/notifications/{identifier}/resend")).status == 409
        unknown = "00000000-0000-4000-8000-000000000000"
        for method, path in (("GET", ""), ("POST", "/cancel"), ("POST", "/resend")):
            assert (await served.ask(method, f"/api/notifications/{unknown}{path}")).status == 404


async def test_a_failed_webhook_is_sent_again_by_hand():
    async with serving() as served:
        request = {"notificationType": "WEBHOOK", "recipient": "http://10.0.0.1/hook", "body": "B"}
        identifier = (await served.post("/api/notifications", request)).body["id"]
        found = await ended(served, identifier, "FAILED")
        assert "10.0.0.1" in found["detail"]
        answer = await served.post(f"/api/notifications/{identifier}/resend")
        assert (answer.status, answer.body["status"]) == (202, "WAITING")


async def test_endpoints_are_registered_listed_and_forgotten():
    async with serving(work=False) as served:
        url = "https://example.org/hook?token=planted"
        made = await served.post("/api/webhook-endpoints", {"url": url})
        assert (made.status, made.body["secret"].startswith("whsec_")) == (201, True)
        (listed,) = (await served.get("/api/webhook-endpoints")).body
        assert (listed["secrets"], listed["disabledAt"], "secret" in listed) == (1, None, False)
        assert (await served.post("/api/webhook-endpoints", {"url": url, "secret": "rubbish"})).status == 400
        assert (await served.post("/api/webhook-endpoints", {"url": "nowhere"})).status == 400
        assert (await served.post("/api/webhook-endpoints/enable", {"url": url})).status == 204
        assert (await served.post("/api/webhook-endpoints/forget", {"url": url})).status == 204
        assert (await served.post("/api/webhook-endpoints/forget", {"url": url})).status == 404


async def test_a_key_without_the_scope_gets_nowhere():
    async with serving(work=False) as served:
        key = await served.make_key("jobs")
        for method, path in (("POST", "/api/notifications"), ("GET", "/api/notifications"), ("GET", "/api/inbox/ada")):
            assert (await served.ask(method, path, SMS if method == "POST" else ..., key=key)).status == 403


async def test_the_books_are_on_the_metrics_page():
    async with serving(**QUICK) as served:
        await ended(served, (await served.post("/api/notifications", SMS)).body["id"])
        webhook = {"notificationType": "WEBHOOK", "recipient": "http://10.0.0.1/hook", "body": "B"}
        await ended(served, (await served.post("/api/notifications", webhook)).body["id"], "FAILED")
        text = (await served.get("/metrics")).text
    assert "\nulak_notify_conservation_difference 0.0\n" in text
    for part, number in (("accepted", 2), ("delivered", 1), ("failed", 1), ("dead", 0), ("waiting", 0)):
        assert f'ulak_notify_notifications{{status="{part}"}} {number}.0\n' in text
    labels = 'error_class="permanent",handler="webhook",kind="notify.webhook"'
    assert f"ulak_notify_failures_total{{{labels}}} 1.0" in text
    assert 'ulak_notify_handle_seconds_count{handler="simulated-sms",kind="notify.sms"} 1.0' in text
    assert 'ulak_capacity{bound="active",kind="notify.sms"} 1000.0' in text
    assert 'ulak_utilisation{bound="active",kind="notify.sms"} 0.0' in text


@pytest.mark.parametrize("query", ["", "&status=WAITING", "&reference=order-7"])
async def test_a_page_of_large_notifications_is_short_and_the_next_goes_on_from_it(query, monkeypatch):
    async with serving(work=False) as served:
        named = {**SMS, "reference": "order-7"}
        ids = [(await served.post("/api/notifications", named)).body["id"] for _ in range(5)]
        (size, *_) = [len(codec.encode(record.payload)) for record in await served.ulak.jobs.list(whole=True, limit=1)]
        for room, expected in (
            (2 * size, [2, 2, 1]),
            (size - 1, [1] * 5),
        ):  # one that is too large is shown all the same
            monkeypatch.setattr(records, "PAGE_BYTES", room)
            pages, before = [], ""
            while before is not None:
                page = (await served.get(f"/api/notifications?limit=50{query}{before}")).body
                pages.append([one["id"] for one in page["items"]])
                before = page["nextBefore"] and f"&before={page['nextBefore']}"
            assert [one for page in pages for one in page] == ids[::-1]
            assert [len(page) for page in pages] == expected


async def test_a_listing_of_large_notifications_loads_few_of_them(monkeypatch):
    size = 200_000
    monkeypatch.setattr(records, "PAGE_BYTES", 2 * size)
    async with serving(work=False) as served:
        for _ in range(20):
            await served.post("/api/notifications", {**SMS, "body": "x" * size})
        tracemalloc.start()
        try:
            assert (await served.get("/api/notifications")).body["nextBefore"] is not None
            assert tracemalloc.get_traced_memory()[1] < 15 * size
        finally:
            tracemalloc.stop()
