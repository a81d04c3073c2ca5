"""What an operator of webhooks looks for first: attempts, a test event, a replay; own payloads, references."""

from __future__ import annotations

import json

import pytest

from tests.notify.conftest import build
from ulak import Invalid
from ulak.clock import to_datetime
from ulak.testing import advance, drain

LOCAL = {"webhook": {"allow": ["127.0.0.0/8"], "max_attempts": 2}}


async def test_an_endpoints_attempts_show_what_it_answered_and_when(receiver, clock):
    hooks = await receiver()
    async with build("memory:", clock, channels=LOCAL) as ulak:
        failed = await ulak.notify.send("WEBHOOK", f"{hooks.url}/status/503", "x")
        await drain(ulak)
        await advance(ulak, 3600)
        await ulak.notify.send("WEBHOOK", f"{hooks.url}/status/200", "y")
        await drain(ulak)
        found = await ulak.notify.attempts(f"{hooks.url}/status/503")
        good = await ulak.notify.attempts(f"{hooks.url}/./status/200")
        page = await ulak.notify.attempts(f"{hooks.url}/status/503", limit=1)
        rest = await ulak.notify.attempts(f"{hooks.url}/status/503", before=page[0].sequence)
        assert [ulak.store.ids.to_uuid(one.job) for one in found] == [failed] * 2
    assert [(one.number, one.status, one.code) for one in found] == [
        (2, 503, "WEBHOOK_HTTP_503"),
        (1, 503, "WEBHOOK_HTTP_503"),
    ]
    assert [(one.status, one.code) for one in good] == [(200, None)]
    assert [one.number for one in (*page, *rest)] == [2, 1]


async def test_a_test_event_is_signed_and_recognisable(receiver, clock):
    hooks = await receiver()
    async with build("memory:", clock, channels=LOCAL) as ulak:
        await ulak.notify.test_endpoint(f"{hooks.url}/status/200")
        await drain(ulak)
    (request,) = hooks.requests
    assert json.loads(request.body)["type"] == "ulak.test"
    assert "webhook-signature" in {name.lower() for name in request.headers}


async def test_a_replay_sends_what_failed_there_since_a_time_and_nothing_else(receiver, clock):
    hooks = await receiver()
    async with build("memory:", clock, channels=LOCAL) as ulak:
        for number in range(3):
            await ulak.notify.send("WEBHOOK", f"{hooks.url}/status/400", str(number))
            await drain(ulak)
            clock.advance(60)
        await ulak.notify.send("WEBHOOK", f"{hooks.url}/status/404", "elsewhere")
        await drain(ulak)
        other = (await ulak.jobs.list(status="dead"))[0]
        await ulak.jobs.edit(other.id, {**other.payload, "recipient": "edited by hand"})
        since = to_datetime(clock.now() - 130_000)
        assert await ulak.notify.replay(f"{hooks.url}/status/400", since) == 2
        await drain(ulak)
    assert len(hooks.requests) == 6


async def test_a_webhook_carries_the_callers_own_payload_and_type(receiver, clock):
    hooks = await receiver()
    async with build("memory:", clock, channels=LOCAL) as ulak:
        await ulak.notify.send("WEBHOOK", f"{hooks.url}/status/200", type="order.shipped", payload={"order": 7})
        await drain(ulak)
    content = json.loads(hooks.requests[0].body)
    assert (content["type"], content["data"]) == ("order.shipped", {"order": 7})
    assert set(content) == {"type", "timestamp", "data"}


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"payload": {}}, "type"),
        ({"payload": {}, "type": "a b"}, "type"),
        ({"payload": {}, "type": "a", "body": "x"}, "body"),
        ({"type": "a", "body": "x", "notification_type": "SMS"}, "type"),
        ({"body": "x", "reference": ""}, "reference"),
    ],
)
async def test_an_event_that_does_not_fit_is_refused_by_field(make_in_memory, given, field):
    given = {"notification_type": "WEBHOOK", "recipient": "https://example.org/", **given}
    async with make_in_memory(work=False) as ulak:
        with pytest.raises(Invalid) as refused:
            await ulak.notify.send(**given)
    assert field in {name for name, _ in refused.value.fields}


async def test_notifications_are_found_by_the_senders_own_reference(make):
    async with make(work=False) as ulak:
        first = await ulak.notify.send("SMS", "+905551112233", "1", reference="order-7")
        second = await ulak.notify.send("SMS", "+905551112233", "2", reference="order-7", idempotency_key="k")
        again = await ulak.notify.send("SMS", "+905551112233", "2", reference="order-7", idempotency_key="k")
        await ulak.notify.send("SMS", "+905551112233", "3", reference="order-8")
        found = await ulak.notify.list(reference="order-7")
    assert again == second
    assert [(view.id, view.reference) for view in found] == [(str(second), "order-7"), (str(first), "order-7")]
