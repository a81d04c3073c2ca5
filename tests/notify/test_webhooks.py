"""WEBHOOK against a real receiver: every status, endpoints and their secrets, bulkheads, what breaks in the middle."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web

from tests.notify.conftest import build
from ulak import Conflict, Invalid, NotFound, Refused
from ulak.channels.signature import BadSignature, Secret, new_secret, verify
from ulak.clock import to_datetime
from ulak.testing import advance, drain

LOCAL = {"allow": ["127.0.0.0/8"]}


def hooking(clock, **webhook):
    return build("memory:", clock, channels={"webhook": {**LOCAL, **webhook}})


async def sent(ulak, url, **fields):
    identifier = await ulak.notify.send("WEBHOOK", url, "Hello", **fields)
    await drain(ulak)
    return await ulak.notify.get(identifier)


STATUSES = (
    *((status, "DELIVERED") for status in (200, 201, 202, 204, 206, 299)),
    *((status, "FAILED") for status in (301, 302, 303, 307, 308, 400, 401, 403, 404, 405, 409, 410, 413, 418, 422)),
    *((status, "RETRYING") for status in (408, 425, 429, 500, 501, 502, 503, 504, 599)),
)


@pytest.mark.parametrize(("status", "outcome"), STATUSES)
async def test_the_answers_status_decides(receiver, clock, status, outcome):
    hooks = await receiver()
    async with hooking(clock) as ulak:
        view = await sent(ulak, f"{hooks.url}/status/{status}")
    assert (view.status, view.uncertain_attempts) == (outcome, 0)
    assert len(hooks.requests) == 1


async def test_a_redirect_is_not_followed(receiver, clock):
    hooks = await receiver()
    hooks.headers["Location"] = f"{hooks.url}/status/200"
    async with hooking(clock) as ulak:
        assert (await sent(ulak, f"{hooks.url}/status/302")).status == "FAILED"
    assert [request.path for request in hooks.requests] == ["/status/302"]


async def test_retry_after_is_kept_to_but_not_for_ever(receiver, clock):
    hooks = await receiver()
    hooks.headers["Retry-After"] = "999999"
    async with hooking(clock, retry_after_cap_seconds=120) as ulak:
        view = await sent(ulak, f"{hooks.url}/status/503")
        assert view.send_at - to_datetime(clock.now()) == timedelta(seconds=120)


async def test_an_endpoint_that_is_gone_is_switched_off_until_it_is_enabled(receiver, clock):
    hooks = await receiver()
    url = f"{hooks.url}/status/410"
    async with hooking(clock) as ulak:
        assert (await sent(ulak, url)).status == "FAILED"
        again = await sent(ulak, url)
        assert (again.status, "switched off" in again.detail) == ("FAILED", True)
        assert len(hooks.requests) == 1
        (endpoint,) = await ulak.notify.endpoints.all()
        assert (endpoint.url, endpoint.reason) == (url, "it answered 410 Gone")
        assert endpoint.disabled_at == to_datetime(clock.now())
        await ulak.notify.endpoints.enable(url)
        await sent(ulak, url)
        assert len(hooks.requests) == 2


async def test_a_registered_endpoint_gets_signed_messages_and_rotation_overlaps(receiver, clock):
    hooks = await receiver()
    url = f"{hooks.url}/status/200"
    async with hooking(clock) as ulak:
        await sent(ulak, url)
        old = await ulak.notify.endpoints.register(url)
        await sent(ulak, url)
        new = await ulak.notify.endpoints.register(url)
        await sent(ulak, url)
        clock.advance(86_401)
        await sent(ulak, url)
        public = await ulak.notify.endpoints.public_key()
    by_ours, by_old, by_both, by_new = hooks.requests
    assert fits(by_ours, public)
    assert not fits(by_old, public)
    assert fits(by_old, old)
    assert fits(by_both, old)
    assert fits(by_both, new)
    assert fits(by_new, new)
    assert not fits(by_new, old)


async def test_an_endpoint_has_ten_secrets_at_a_time(clock):
    async with hooking(clock) as ulak:
        url = "https://example.org/hook"
        for _ in range(10):
            await ulak.notify.endpoints.register(url)
        with pytest.raises(Conflict, match="at most 10 secrets"):
            await ulak.notify.endpoints.register(url)
        clock.advance(86_401)
        assert await ulak.notify.endpoints.register(url)


def fits(request, secret):
    headers = {name.lower(): value for name, value in request.headers.items()}
    sent_at = datetime.fromtimestamp(int(headers["webhook-timestamp"]), UTC)
    try:
        return verify([Secret(secret)], headers, request.body, sent_at)
    except BadSignature:
        return ""


async def test_every_spelling_of_a_url_is_the_same_endpoint(receiver, clock):
    hooks = await receiver()
    url = f"{hooks.url}/status/200"
    async with hooking(clock) as ulak:
        secret = await ulak.notify.endpoints.register(url.replace("http://", "HTTP://"))
        for spelling in (url, f"{url}?", f"{url}#f", url.replace("/status", "/./status")):
            await sent(ulak, spelling)
        assert len(await ulak.notify.endpoints.all()) == 1
    assert [bool(fits(request, secret)) for request in hooks.requests] == [True] * 4


@pytest.mark.parametrize("url", ["http://u:p@h.org/", "ftp://h.org", "http://", "h.org"])
async def test_an_endpoint_that_could_never_be_called_is_not_registered(clock, url):
    async with hooking(clock) as ulak:
        with pytest.raises(Invalid):
            await ulak.notify.endpoints.register(url)


async def test_an_endpoint_that_requires_a_secret_is_sent_nothing_until_it_has_one(receiver, clock):
    hooks = await receiver()
    url = f"{hooks.url}/status/200"
    async with hooking(clock) as ulak:
        assert await ulak.notify.endpoints.register(url, requires_secret=True) is None
        view = await sent(ulak, url)
        assert (view.status, hooks.requests) == ("RETRYING", [])
        secret = new_secret()
        await ulak.notify.endpoints.register(url, secret, requires_secret=True)
        await advance(ulak, 3600)
        assert (await ulak.notify.get(view.id)).status == "DELIVERED"
    assert [bool(fits(request, secret)) for request in hooks.requests] == [True]


async def test_endpoints_without_the_secret_they_require_cost_their_server_nothing(receiver, clock):
    hooks = await receiver()
    async with hooking(clock) as ulak:
        await ulak.notify.endpoints.register(f"{hooks.url}/waits", requires_secret=True)
        for _ in range(12):
            await sent(ulak, f"{hooks.url}/waits")
        assert (await sent(ulak, f"{hooks.url}/status/200")).status == "DELIVERED"


async def test_endpoints_without_the_secret_they_require_do_not_hide_that_their_server_fails(receiver, clock):
    hooks = await receiver()
    async with hooking(clock) as ulak:
        await ulak.notify.endpoints.register(f"{hooks.url}/waits", requires_secret=True)
        for _ in range(10):
            await sent(ulak, f"{hooks.url}/status/500")
            await sent(ulak, f"{hooks.url}/waits")
        assert [one.state for one in ulak.loops.breakers.all()] == ["open"]


async def test_messages_that_are_never_sent_do_not_hide_that_their_server_fails(receiver, clock):
    hooks = await receiver()
    async with hooking(clock) as ulak:
        await ulak.notify.endpoints.disable(f"{hooks.url}/off", "it is not wanted")
        for _ in range(10):
            assert (await sent(ulak, f"{hooks.url}/off")).status == "FAILED"
            await sent(ulak, f"{hooks.url}/status/500")
        assert [one.state for one in ulak.loops.breakers.all()] == ["open"]


async def test_messages_in_a_hurry_do_not_open_the_breaker_of_a_server_that_others_use(receiver, clock):
    hooks = await receiver()

    async def answer(request):
        if request.path == "/slow":
            await asyncio.Event().wait()
        return web.Response()

    hooks.answer = answer
    async with hooking(clock) as ulak:
        for _ in range(12):
            await sent(ulak, f"{hooks.url}/slow", timeout_seconds=0.001)
        assert (await sent(ulak, f"{hooks.url}/quick")).status == "DELIVERED"


async def test_a_server_that_hangs_opens_its_breaker_though_messages_would_wait_longer(receiver, clock):
    hooks = await receiver()

    async def hang(request):
        await asyncio.Event().wait()

    hooks.answer = hang
    async with hooking(clock, timeout_seconds=0.02) as ulak:
        for _ in range(10):
            await sent(ulak, f"{hooks.url}/slow", timeout_seconds=60)
        assert [one.state for one in ulak.loops.breakers.all()] == ["open"]


async def test_unknown_endpoints_are_told(clock):
    async with hooking(clock) as ulak:
        for verb in (ulak.notify.endpoints.enable, ulak.notify.endpoints.forget):
            with pytest.raises(NotFound, match="no such endpoint"):
                await verb("https://example.org/hook")


async def test_a_receiver_that_hangs_up_in_the_middle_leaves_it_uncertain(receiver, clock):
    hooks = await receiver()

    async def hang_up(request):
        request.transport.abort()
        return web.Response()

    hooks.answer = hang_up
    async with hooking(clock) as ulak:
        held = await sent(ulak, f"{hooks.url}/drop", on_uncertain="hold")
        resent = await sent(ulak, f"{hooks.url}/drop")
    assert (held.status, held.uncertain_attempts) == ("HELD", 1)
    assert (resent.status, resent.uncertain_attempts) == ("RETRYING", 1)


async def test_a_body_that_never_ends_does_not_matter_once_the_status_is_there(receiver, clock):
    hooks = await receiver()

    async def trickle(request):
        response = web.StreamResponse(status=200)
        await response.prepare(request)
        for _ in range(200):
            await response.write(b"x" * 1024)
        return response

    hooks.answer = trickle
    async with hooking(clock) as ulak:
        assert (await sent(ulak, f"{hooks.url}/slow")).status == "DELIVERED"


async def test_a_receiver_that_never_answers_is_uncertain_after_its_time(receiver, clock):
    hooks, never = await receiver(), asyncio.Event()

    async def wait(request):
        await never.wait()
        return web.Response()

    hooks.answer = wait
    async with hooking(clock, timeout_seconds=0.1) as ulak:
        view = await sent(ulak, f"{hooks.url}/never")
        never.set()
    assert (view.status, view.uncertain_attempts) == ("RETRYING", 1)


async def test_a_private_address_is_not_called(receiver, clock):
    hooks = await receiver()
    async with build("memory:", clock) as ulak:
        view = await sent(ulak, f"{hooks.url}/status/200")
    assert (view.status, hooks.requests) == ("FAILED", [])
    assert "channels.webhook.allow" in view.detail


class Counter:
    """Counts the requests that are here at once; the first three wait for one another."""

    def __init__(self):
        self.here = self.most = 0
        self._three = asyncio.Event()

    async def answer(self, request):
        self.here += 1
        self.most = max(self.most, self.here)
        if self.here == 3:
            self._three.set()
        await self._three.wait()
        self.here -= 1
        return web.Response()


async def test_one_destination_has_so_many_requests_at_once_and_no_more(receiver, clock):
    hooks, counter = await receiver(), Counter()
    hooks.answer = counter.answer
    async with hooking(clock, slots_per_destination=3) as ulak:
        for _ in range(12):
            await ulak.notify.send("WEBHOOK", f"{hooks.url}/count", "Hello")
        await drain(ulak)
    assert (counter.most, len(hooks.requests)) == (3, 12)


async def test_messages_of_many_order_keys_have_no_more_requests_at_once_to_one_destination(receiver, clock):
    hooks, counter = await receiver(), Counter()
    hooks.answer = counter.answer
    async with hooking(clock, slots_per_destination=3) as ulak:
        for number in range(12):
            await ulak.notify.send("WEBHOOK", f"{hooks.url}/count", "Hello", order_key=f"customer-{number}")
        await drain(ulak)
        while len(hooks.requests) < 12:
            await advance(ulak, 1)
        stored = await ulak.notify.list(limit=100)
    assert counter.most == 3
    assert {(view.status, view.attempts) for view in stored} == {("DELIVERED", 1)}


async def test_a_dead_destination_is_asked_once_in_a_while_whatever_the_order_keys(receiver, clock):
    hooks, dead = await receiver(), "http://127.0.0.1:9/hook"
    async with hooking(clock, retry_first_seconds=1, retry_cap_seconds=1) as ulak:
        for number in range(20):
            await ulak.notify.send("WEBHOOK", dead, "Hello", order_key=f"customer-{number}")
        for _ in range(20):
            await advance(ulak, 2)
        assert [breaker.destination for breaker in ulak.loops.breakers.all()] == ["http://127.0.0.1:9"]
        attempts = sum(view.attempts for view in await ulak.notify.list(limit=100))
        assert 10 <= attempts < 20  # ten open it; after that, one a trial
        view = await sent(ulak, f"{hooks.url}/status/200", order_key="customer-21")
    assert view.status == "DELIVERED"


async def test_order_is_kept_while_a_destination_has_no_place_free(receiver, clock):
    hooks = await receiver()
    async with hooking(clock, slots_per_destination=1) as ulak:
        for number in range(5):
            for name in ("ada", "bob"):
                await ulak.notify.send("WEBHOOK", f"{hooks.url}/status/200", f"{name} {number}", order_key=name)
        await drain(ulak)
        while len(hooks.requests) < 10:
            await advance(ulak, 1)
    bodies = [json.loads(request.body)["body"] for request in hooks.requests]
    for name in ("ada", "bob"):
        assert [body for body in bodies if body.startswith(name)] == [f"{name} {number}" for number in range(5)]


async def test_a_dead_destination_trips_its_breaker_and_leaves_the_others_alone(receiver, clock):
    hooks = await receiver()
    dead = "http://127.0.0.1:9/hook"
    async with hooking(clock, retry_first_seconds=1, retry_cap_seconds=1) as ulak:
        for _ in range(20):
            await ulak.notify.send("WEBHOOK", dead, "Hello")
        for _ in range(6):
            await advance(ulak, 2)
        assert ulak.telemetry.counters[("breaker_stops", "notify.webhook", "")] > 0
        assert (await sent(ulak, f"{hooks.url}/status/200")).status == "DELIVERED"
        statuses = {view.status for view in await ulak.notify.list(limit=100) if view.recipient == dead}
    assert statuses <= {"RETRYING", "WAITING"}


async def test_the_body_of_a_webhook_names_the_notification_and_not_the_recipient(receiver, clock):
    hooks = await receiver()
    async with hooking(clock) as ulak:
        view = await sent(ulak, f"{hooks.url}/status/200?token=planted", subject="S", metadata={"a": 1})
    body = json.loads(hooks.requests[0].body)
    assert (body["id"], body["body"], body["subject"], body["metadata"]) == (view.id, "Hello", "S", {"a": 1})
    assert "planted" not in hooks.requests[0].body.decode()


async def test_a_full_type_is_refused_and_the_others_are_not(clock):
    sections = {"notify": {"capacity": 1, "admission": "reject"}, "channels": {"webhook": LOCAL}}
    async with build("memory:", clock, work=False, **sections) as ulak:
        await ulak.notify.send("IN_APP", "ada", "1")
        with pytest.raises(Refused):
            await ulak.notify.send("IN_APP", "ada", "2")
        await ulak.notify.send("WEBHOOK", "https://example.org/hook", "3")
