"""The webhook channel against a real receiver: every status, slow and huge bodies, resets, redirects, SSRF."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver

from ulak.channels.channel import EndpointGone, Uncertain
from ulak.channels.client import parse_retry_after
from ulak.channels.signature import Secret, new_key_pair, new_secret, verify
from ulak.channels.webhook import WebhookChannel, WebhookOptions
from ulak.clock import ManualClock, to_datetime
from ulak.errors import Failure, Permanent, Throttled, Transient

NOW = to_datetime(ManualClock().now())

Channels = Callable[..., WebhookChannel]
LOOPBACK = ("127.0.0.0/8",)


class Names(AbstractResolver):
    """A resolver whose answers a test writes, one list per question; the last one stays."""

    def __init__(self, *answers: list[str]) -> None:
        self._answers = list(answers)
        self.questions = 0

    async def resolve(self, host: str, port: int = 0, family: int = socket.AF_UNSPEC) -> list[Any]:
        self.questions += 1
        ips = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return [
            {"hostname": host, "host": ip, "port": port, "family": _family(ip), "proto": 0, "flags": 0} for ip in ips
        ]

    async def close(self) -> None:
        """Nothing is open."""


def _family(ip: str) -> int:
    return socket.AF_INET6 if ":" in ip else socket.AF_INET


@pytest.fixture
async def channel() -> AsyncIterator[Channels]:
    async with AsyncExitStack() as stack:

        def open_channel(*, secrets=None, resolver=None, clock=None, **options: Any) -> WebhookChannel:
            extra = {} if secrets is None else {"secrets": secrets}
            made = WebhookChannel(
                WebhookOptions(**{"allow": LOOPBACK, **options}), resolver=resolver, clock=clock, **extra
            )
            stack.push_async_callback(made.close)
            return made

        yield open_channel


async def failure_of(delivery: Any) -> Failure:
    with pytest.raises(Failure) as caught:
        await delivery
    return caught.value


async def test_the_receiver_gets_the_documented_body_and_nothing_about_the_recipient(receiver, channel, write):
    hooks = await receiver()
    message = write(f"{hooks.url}/status/200", notification_type="WEBHOOK", metadata={"order": 7})
    receipt = await channel().handle(message)
    [request] = hooks.requests
    assert json.loads(request.body) == {
        "id": message.id,
        "type": "WEBHOOK",
        "subject": "Hello",
        "body": "Hello Ada",
        "metadata": {"order": 7},
        "createdAt": "2027-01-15T08:00:00.123Z",
    }
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["webhook-id"] == message.id
    assert receipt.detail == {"status": 200}


async def test_the_receiver_can_verify_the_signature_during_a_rotation(receiver, channel, write):
    hooks = await receiver()
    signing, public = new_key_pair()
    old, new = Secret(new_secret(), expires_at=NOW + timedelta(milliseconds=1)), Secret(new_secret())
    url = f"{hooks.url}/status/204"
    asked = []

    def secrets(url: str) -> list[Secret]:
        asked.append(url)
        return [new, old, Secret(signing)]

    await channel(secrets=secrets, clock=ManualClock()).handle(write(url))
    [request] = hooks.requests
    for secret in (old, new, Secret(public)):
        assert verify([secret], request.headers, request.body, NOW) == write().id
    assert asked == [url]


async def test_secrets_may_be_looked_up_asynchronously(receiver, channel, write):
    hooks = await receiver()
    secret = Secret(new_secret())

    async def secrets(url: str) -> list[Secret]:
        return [secret]

    await channel(secrets=secrets, clock=ManualClock()).handle(write(f"{hooks.url}/status/200"))
    [request] = hooks.requests
    assert verify([secret], request.headers, request.body, NOW)


async def test_an_endpoint_without_secrets_gets_unsigned_requests(receiver, channel, write):
    hooks = await receiver()
    await channel().handle(write(f"{hooks.url}/status/200"))
    assert "webhook-signature" not in hooks.requests[0].headers


async def test_an_endpoint_whose_secrets_have_all_expired_gets_nothing(receiver, channel, write):
    hooks = await receiver()
    stale = [Secret(new_secret(), expires_at=datetime(1970, 1, 1, tzinfo=UTC))]
    with pytest.raises(Permanent, match="expired"):
        await channel(secrets=lambda _: stale).handle(write(f"{hooks.url}/status/200"))
    assert hooks.requests == []


@pytest.mark.parametrize("status", [200, 201, 202, 204, 226])
async def test_every_2xx_is_a_yes(receiver, channel, write, status):
    hooks = await receiver()
    assert (await channel().handle(write(f"{hooks.url}/status/{status}"))).detail == {"status": status}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        *((status, Permanent) for status in (300, 301, 302, 303, 304, 307, 308)),
        *((status, Permanent) for status in (400, 401, 403, 404, 405, 409, 413, 415, 418, 422, 451)),
        (410, EndpointGone),
        *((status, Transient) for status in (408, 425, 500, 501, 502, 503, 504, 507, 599)),
        (429, Throttled),
    ],
)
async def test_every_other_status_has_its_failure(receiver, channel, write, status, expected):
    hooks = await receiver()
    failure = await failure_of(channel().handle(write(f"{hooks.url}/status/{status}?token=s3cret")))
    assert type(failure) is expected
    assert str(failure).startswith(f"{hooks.url} answered {status}")  # with its port
    assert "s3cret" not in str(failure)


async def test_a_redirect_is_not_followed(receiver, channel, write):
    hooks, other = await receiver(), await receiver()
    hooks.headers["Location"] = f"{other.url}/status/200"
    with pytest.raises(Permanent, match="redirect"):
        await channel().handle(write(f"{hooks.url}/status/302"))
    assert other.requests == []


@pytest.mark.parametrize("status", [408, 425, 429, 500, 503])
async def test_retry_after_is_obeyed(receiver, channel, write, status):
    hooks = await receiver()
    hooks.headers["Retry-After"] = "120"
    failure = await failure_of(channel().handle(write(f"{hooks.url}/status/{status}")))
    assert isinstance(failure, Throttled)
    assert failure.retry_after_seconds == 120


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("999999", 600),
        ("9" * 50, 600),
        ("Fri, 15 Jan 2027 08:02:00 GMT", 120),
        ("Fri, 15 Jan 2999 08:00:00 GMT", 600),
    ],
)
async def test_retry_after_is_clamped(receiver, channel, write, text, seconds):
    hooks = await receiver()
    hooks.headers["Retry-After"] = text
    delivery = channel(clock=ManualClock(), retry_after_cap_seconds=600).handle(write(f"{hooks.url}/status/503"))
    failure = await failure_of(delivery)
    assert isinstance(failure, Throttled)
    assert failure.retry_after_seconds == seconds


@pytest.mark.parametrize("text", ["", "soon", "-5", "1.5", "Foo, 99 Bar 2027", "٣"])
def test_a_retry_after_that_says_nothing_is_ignored(text):
    assert parse_retry_after(text, 0) is None


@pytest.mark.parametrize("text", ["0", "Fri, 15 Jan 2027 07:00:00 GMT", "soon"])
@pytest.mark.parametrize(("status", "expected"), [(503, Transient), (429, Throttled)])
async def test_a_retry_after_of_nothing_leaves_the_wait_to_our_backoff(
    receiver, channel, write, text, status, expected
):
    hooks = await receiver()
    hooks.headers["Retry-After"] = text
    failure = await failure_of(channel(clock=ManualClock()).handle(write(f"{hooks.url}/status/{status}")))
    assert type(failure) is expected
    assert getattr(failure, "retry_after_seconds", None) is None


async def test_a_body_that_json_can_not_carry_is_refused(channel, write):
    for fields in ({"body": "lone \ud800"}, {"metadata": {"x": object()}}):
        with pytest.raises(Permanent, match="JSON"):
            await channel().handle(write("http://127.0.0.1/", **fields))


async def test_connections_are_kept_and_used_again(receiver, channel, write):
    hooks = await receiver()
    poster = channel()
    for _ in range(5):
        await poster.handle(write(f"{hooks.url}/status/200"))
    assert len(hooks.requests) == 5
    assert len(hooks.connections) == 1


async def test_a_huge_body_is_not_read(receiver, channel, write):
    hooks = await receiver()
    sent = 0

    async def flood(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse(headers={"Content-Length": str(1 << 30)})
        await response.prepare(request)
        with suppress(ConnectionError):
            while sent < 1 << 30:
                await response.write(b"x" * 65_536)
                sent += 65_536
        return response

    hooks.answer = flood
    assert (await channel().handle(write(f"{hooks.url}/flood"))).detail == {"status": 200}
    assert sent < 1 << 26


async def test_a_body_that_never_ends_does_not_hold_up_the_answer(receiver, channel, write, monkeypatch):
    monkeypatch.setattr("ulak.channels.client._DRAIN_SECONDS", 0.05)
    hooks = await receiver()
    hold = asyncio.Event()

    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=503)
        await response.prepare(request)
        await response.write(b"x")
        await hold.wait()
        return response

    hooks.answer = drip
    failure = await failure_of(channel().handle(write(f"{hooks.url}/drip")))
    hold.set()
    assert "503" in str(failure)


async def test_a_packed_bomb_stays_packed(receiver, channel, write):
    hooks = await receiver()

    async def bomb(request: web.Request) -> web.Response:
        return web.Response(body=b"not gzip at all", headers={"Content-Encoding": "gzip"})

    hooks.answer = bomb
    assert (await channel().handle(write(f"{hooks.url}/bomb"))).detail == {"status": 200}


async def test_a_receiver_that_does_not_answer_is_uncertain(receiver, channel, write):
    hooks = await receiver()
    hold = asyncio.Event()

    async def hang(request: web.Request) -> web.Response:
        await hold.wait()
        return web.Response()

    hooks.answer = hang
    failure = await failure_of(channel(timeout_seconds=0.2).handle(write(f"{hooks.url}/hang")))
    hold.set()
    assert type(failure) is Uncertain


@pytest.mark.parametrize("reset", [True, False])
async def test_a_line_that_breaks_after_the_request_is_uncertain(receiver, channel, write, reset):
    hooks = await receiver()

    async def hang_up(request: web.Request) -> web.Response:
        if reset:
            request.transport.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )
        request.transport.abort()
        return web.Response()

    hooks.answer = hang_up
    assert type(await failure_of(channel().handle(write(f"{hooks.url}/reset")))) is Uncertain


async def test_an_answer_that_is_no_http_is_uncertain(channel, write):
    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"250 OK, this is SMTP\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(babble, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        failure = await failure_of(channel().handle(write(f"http://127.0.0.1:{port}/")))
    assert type(failure) is Uncertain


async def test_nobody_listening_is_transient(channel, write):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        failure = await failure_of(channel().handle(write(f"http://127.0.0.1:{held.getsockname()[1]}/?key=s3cret")))
    assert type(failure) is Transient
    assert "s3cret" not in str(failure)


async def test_a_busy_pool_is_transient_because_nothing_was_sent(receiver, channel, write):
    hooks = await receiver()
    arrived, hold = asyncio.Event(), asyncio.Event()

    async def hang(request: web.Request) -> web.Response:
        arrived.set()
        await hold.wait()
        return web.Response()

    hooks.answer = hang
    poster = channel(connections=1, connect_timeout_seconds=0.1)
    first = asyncio.create_task(poster.handle(write(f"{hooks.url}/a")))
    await arrived.wait()
    failure = await failure_of(poster.handle(write(f"{hooks.url}/b")))
    hold.set()
    await first
    assert type(failure) is Transient
    assert len(hooks.requests) == 1


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/",
        "http://[::ffff:127.0.0.1]:{port}/",
        "http://localhost:{port}/",
        "http://0x7f.1:{port}/",
        "http://127.1:{port}/",
        "http://2130706433:{port}/",
        "http://0:{port}/",
        "http://[::]:{port}/",
        "http://[64:ff9b::7f00:1]:{port}/",
        "http://[2002:7f00:1::]:{port}/",
        "http://169.254.169.254/latest/meta-data/",
        "http://10.0.0.1/",
    ],
)
async def test_loopback_and_private_addresses_are_refused_in_every_spelling(receiver, channel, write, url):
    hooks = await receiver()
    failure = await failure_of(channel(allow=()).handle(write(url.format(port=hooks.port))))
    assert isinstance(failure, Permanent)
    assert hooks.requests == []
    assert not hooks.connections


async def test_a_refused_address_says_how_it_could_be_allowed(channel, write):
    failure = await failure_of(channel(allow=()).handle(write("http://10.0.0.1/secret-path")))
    assert "ULAK_CHANNELS__WEBHOOK__ALLOW" in str(failure)
    assert "secret-path" not in str(failure)


async def test_a_name_that_turns_private_after_the_first_answer_is_refused(receiver, channel, write):
    """DNS rebinding: a permitted address when asked first, the forbidden one when asked again."""
    hooks = await receiver()
    names = Names(["127.0.0.2"], ["127.0.0.1"])
    poster = channel(allow=("127.0.0.2/32",), resolver=names)
    url = f"http://rebind.example:{hooks.port}/status/200"
    first = await failure_of(poster.handle(write(url)))
    poster._client._session.connector.clear_dns_cache()
    second = await failure_of(poster.handle(write(url)))
    assert type(first) is Transient  # permitted, but nobody listens there
    assert type(second) is Permanent
    assert names.questions == 2
    assert hooks.requests == []


async def test_one_name_is_asked_once_per_connection_so_check_and_dial_see_the_same(receiver, channel, write):
    hooks = await receiver()
    names = Names(["127.0.0.1"], ["10.0.0.1"])
    await channel(resolver=names).handle(write(f"http://pinned.example:{hooks.port}/status/200"))
    assert names.questions == 1
    assert len(hooks.requests) == 1


async def test_only_the_permitted_answers_of_a_mixed_name_are_dialled(receiver, channel, write):
    hooks = await receiver()
    names = Names(["10.0.0.1", "::1", "127.0.0.1"])
    await channel(resolver=names).handle(write(f"http://mixed.example:{hooks.port}/status/200"))
    assert len(hooks.requests) == 1


async def test_tls_checks_the_name_and_not_the_pinned_address(receiver, channel, write, certificate):
    hooks = await receiver(tls=certificate.server_context())
    poster = channel(resolver=Names(["127.0.0.1"]), ca_file=certificate.cert_file)
    await poster.handle(write(f"https://hooks.example.org:{hooks.port}/status/200"))
    assert hooks.requests[0].headers["Host"] == f"hooks.example.org:{hooks.port}"
    failure = await failure_of(poster.handle(write(f"https://other.example.org:{hooks.port}/status/200")))
    assert type(failure) is Transient


async def test_an_untrusted_certificate_is_transient(receiver, channel, write, certificate):
    hooks = await receiver(tls=certificate.server_context())
    failure = await failure_of(channel().handle(write(f"https://127.0.0.1:{hooks.port}/status/200")))
    assert type(failure) is Transient
    assert hooks.requests == []


async def test_cookies_of_a_receiver_are_not_kept(receiver, channel, write):
    hooks = await receiver()
    hooks.headers["Set-Cookie"] = "a=b"
    poster = channel()
    await poster.handle(write(f"{hooks.url}/status/200"))
    await poster.handle(write(f"{hooks.url}/status/200"))
    assert "Cookie" not in hooks.requests[1].headers


def test_it_carries_webhooks_only():
    assert WebhookChannel().can_handle("WEBHOOK")
    assert not WebhookChannel().can_handle("EMAIL")


async def test_the_address_may_bring_headers_but_none_of_ours(receiver, channel, write):
    hooks = await receiver()
    url = f"{hooks.url}/status/200"
    await channel().handle(write(url, target_meta={"headers": {"Authorization": "Bearer x", "X-Tenant": "7"}}))
    assert hooks.requests[0].headers["Authorization"] == "Bearer x"
    for headers in (
        {"webhook-id": "x"},
        {"Host": "x"},
        {"Content-Length": "0"},
        {"X-A": "b\r\nX-C: d"},
        {"X A": "b"},
        {"X-A": 7},
        {f"X-{number}": "x" for number in range(21)},
        ["X-A"],
    ):
        failure = await failure_of(channel().handle(write(url, target_meta={"headers": headers})))
        assert (type(failure), failure.code) == (Permanent, "WEBHOOK_INVALID_HEADER")
    assert len(hooks.requests) == 1


@pytest.mark.parametrize(("status", "code"), [(503, "WEBHOOK_HTTP_503"), (410, "WEBHOOK_HTTP_410")])
async def test_a_failure_carries_the_status_as_a_code(receiver, channel, write, status, code):
    hooks = await receiver()
    assert (await failure_of(channel().handle(write(f"{hooks.url}/status/{status}")))).code == code
