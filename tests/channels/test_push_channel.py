"""PUSH to browsers: encrypted for the subscription alone, signed by our key, and never past the guard."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field

import http_ece
import pytest
from aiohttp import web
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from py_vapid import Vapid02

from tests.providers.server import Asked, ProviderServer, serving
from ulak.channels.channel import RecipientGone
from ulak.channels.push import PushChannel
from ulak.channels.webpush import WebPushChannel, WebPushOptions
from ulak.errors import Failure, Misconfigured, Permanent, Throttled
from ulak.testing import check_channel

LOOPBACK = ("127.0.0.0/8",)


def text_of(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


@dataclass
class Browser:
    """A subscription, and the keys that only the browser has."""

    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    auth: bytes = b"0123456789abcdef"

    @property
    def keys(self) -> dict[str, str]:
        raw = self.key.public_key().public_bytes(
            serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
        )
        return {"p256dh": text_of(raw), "auth": text_of(self.auth)}

    def read(self, body: bytes) -> dict:
        return json.loads(http_ece.decrypt(body, private_key=self.key, auth_secret=self.auth, version="aes128gcm"))


@dataclass
class PushService(ProviderServer):
    async def usual(self, request: web.Request, asked: Asked) -> web.StreamResponse:
        return web.Response(status=201, headers={"Location": f"{self.url}/m/abc"})


@pytest.fixture
async def service():
    async with serving(PushService()) as made:
        yield made


@pytest.fixture
async def channel():
    made = WebPushChannel(WebPushOptions(_new_key(), "mailto:ops@example.org", allow=LOOPBACK))
    yield made
    await made.close()


def _new_key() -> str:
    vapid = Vapid02()
    vapid.generate_keys()
    return vapid.private_pem().decode()


@pytest.fixture
def message(service, write):
    def of(**fields):
        given = {
            "recipient": f"{service.url}/push/1",
            "notification_type": "PUSH",
            "target_meta": {"keys": Browser().keys},
        }
        return write(**{**given, **fields})

    return of


async def failure_of(delivery) -> Failure:
    with pytest.raises(Failure) as caught:
        await delivery
    return caught.value


async def test_a_browser_reads_what_was_sent_and_the_service_only_whom_it_is_from(service, channel, message):
    browser = Browser()
    began = 1_800_000_000_000
    sent = message(
        target_meta={"keys": browser.keys}, metadata={"order": 7}, priority="URGENT",
        began_millis=began, expires_millis=began + 90_000,
    )  # fmt: skip
    receipt = await channel.handle(sent)
    [asked] = service.asked
    assert browser.read(asked.body) == {"id": sent.id, "title": "Hello", "body": "Hello Ada", "data": {"order": 7}}
    assert (asked.headers["TTL"], asked.headers["Urgency"]) == ("90", "high")
    assert Vapid02.verify(asked.headers["Authorization"])
    assert receipt.provider_id == "webpush:abc"


async def test_it_keeps_the_contract_of_a_channel(service, channel, message):
    await check_channel(channel, message())


@pytest.mark.parametrize("status", [404, 410])
async def test_an_ended_subscription_is_to_be_forgotten(service, channel, message, status):
    service.script = [web.Response(status=status)]
    failure = await failure_of(channel.handle(message()))
    assert (type(failure), failure.code) == (RecipientGone, f"WEBPUSH_HTTP_{status}")


async def test_a_service_that_asks_to_wait_is_heard(service, channel, message):
    service.script = [web.Response(status=429, headers={"Retry-After": "9"})]
    failure = await failure_of(channel.handle(message()))
    assert (type(failure), failure.retry_after_seconds) == (Throttled, 9.0)


@pytest.mark.parametrize("keys", [None, {}, {"p256dh": "x", "auth": "y"}, "keys", {"p256dh": 1, "auth": 2}], ids=str)
async def test_a_subscription_without_keys_is_told(service, channel, message, keys):
    failure = await failure_of(channel.handle(message(target_meta={"keys": keys})))
    assert (type(failure), failure.code, service.asked) == (Permanent, "WEBPUSH_INVALID_KEYS", [])


async def test_a_large_message_is_refused_before_it_leaves(service, channel, message):
    failure = await failure_of(channel.handle(message(body="x" * 4000)))
    assert (failure.code, service.asked) == ("WEBPUSH_TOO_LONG", [])


async def test_an_endpoint_on_a_private_address_is_not_called(service, message):
    channel = WebPushChannel(WebPushOptions(_new_key(), "mailto:ops@example.org"))
    failure = await failure_of(channel.handle(message()))
    assert (type(failure), failure.code, service.asked) == (Permanent, "WEBPUSH_BLOCKED", [])
    await channel.close()


@pytest.mark.parametrize("url", ["ftp://example.org/x", "https://user:pw@example.org/", "https:///x", "x://\x00"])
async def test_an_endpoint_that_is_no_web_address_is_told(channel, message, url):
    failure = await failure_of(channel.handle(message(recipient=url)))
    assert (type(failure), failure.code) == (Permanent, "WEBPUSH_INVALID_URL")


def test_a_wrong_key_or_subject_is_told_at_the_start():
    with pytest.raises(Misconfigured, match="vapid_private_key"):
        WebPushChannel(WebPushOptions("planted", "mailto:ops@example.org"))
    with pytest.raises(Misconfigured, match="vapid_subject"):
        WebPushChannel(WebPushOptions(_new_key(), "ops@example.org"))


async def test_tokens_go_to_apps_and_urls_to_browsers(service, channel, message, write):
    push = PushChannel(None, channel)
    assert (await push.handle(message())).provider_id == "webpush:abc"
    failure = await failure_of(push.handle(write("device-token", notification_type="PUSH")))
    assert (type(failure), failure.code) == (Permanent, "FCM_NOT_CONFIGURED")
    await push.close()
