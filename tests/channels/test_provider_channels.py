"""The channels over providers, each against a local server that answers as the provider documents it."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack

import pytest
from aiohttp import web

from tests.providers import google, slack, twilio, whatsapp
from tests.providers.google import FcmServer, fcm_error
from tests.providers.server import serving, told
from tests.providers.slack import SlackServer
from tests.providers.twilio import TwilioServer, twilio_error
from tests.providers.whatsapp import WhatsappServer, graph_error
from ulak.channels.channel import RecipientGone, Uncertain
from ulak.channels.client import GuardedClient
from ulak.channels.fcm import FcmChannel, FcmOptions
from ulak.channels.slack import SlackChannel, SlackOptions
from ulak.channels.twilio import TwilioChannel, TwilioOptions
from ulak.channels.whatsapp import WhatsappChannel, WhatsappOptions
from ulak.errors import Failure, Permanent, Throttled, Transient
from ulak.testing import check_channel

LOOPBACK = ("127.0.0.0/8",)
PEOPLE = {"PUSH": "device-token", "SMS": "+905550001122", "WHATSAPP": "905550001122", "SLACK": "C024BE91L"}


def fcm_over(server, **more):
    return FcmChannel(FcmOptions(server.account(), url=server.url, allow=LOOPBACK, **more))


def twilio_over(server, **more):
    given = {"account_sid": twilio.ACCOUNT, "user": twilio.ACCOUNT, "password": twilio.TOKEN, "sender": "+15005550006"}
    return TwilioChannel(TwilioOptions(**{**given, "url": server.url, "allow": LOOPBACK, **more}))


def whatsapp_over(server, **more):
    options = {"phone_number_id": whatsapp.NUMBER, "access_token": whatsapp.TOKEN, "template": "alarm", **more}
    return WhatsappChannel(WhatsappOptions(url=f"{server.url}/v21.0", allow=LOOPBACK, **options))


def slack_over(server, **more):
    return SlackChannel(SlackOptions(**{"token": slack.TOKEN, "url": server.url, "allow": LOOPBACK, **more}))


PROVIDERS = {
    "PUSH": (FcmServer, fcm_over),
    "SMS": (TwilioServer, twilio_over),
    "WHATSAPP": (WhatsappServer, whatsapp_over),
    "SLACK": (SlackServer, slack_over),
}


@pytest.fixture
async def open_provider():
    """Starts a type's server; returns it and a channel over it."""
    async with AsyncExitStack() as stack:

        async def start(name, **options):
            server_of, channel_over = PROVIDERS[name]
            server = await stack.enter_async_context(serving(server_of()))
            channel = channel_over(server, **options)
            stack.push_async_callback(channel.close)
            return server, channel

        yield start


@pytest.fixture
def message(write):
    def of(name, **fields):
        return write(**{"recipient": PEOPLE[name], "notification_type": name, **fields})

    return of


async def failure_of(delivery) -> Failure:
    with pytest.raises(Failure) as caught:
        await delivery
    return caught.value


@pytest.mark.parametrize("name", PROVIDERS)
async def test_every_provider_keeps_the_contract_of_a_channel(open_provider, message, name):
    _, channel = await open_provider(name)
    receipt = await check_channel(channel, message(name))
    assert receipt.provider_id.partition(":")[0] in {"fcm", "twilio", "whatsapp", "slack"}


@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_provider_that_never_answers_leaves_it_uncertain_after_the_messages_own_time(
    open_provider, message, name
):
    server, channel = await open_provider(name)
    await channel.handle(message(name))  # so that a token is there and the connection stands
    server.script = [asyncio.Event()]
    failure = await failure_of(channel.handle(message(name, timeout_seconds=0.05)))
    assert isinstance(failure, Uncertain)
    assert failure.code.endswith("_TIMEOUT")


@pytest.mark.parametrize(("name", "script"), [("PUSH", []), ("WHATSAPP", [graph_error(131047)])])
async def test_two_requests_for_one_message_share_its_time(open_provider, message, monkeypatch, name, script):
    """A token first, or a template after a text that came too late: the second one has what the first has left."""
    given, ask = [], GuardedClient.ask

    async def counted(self, url, body, headers, seconds, provider):
        given.append(seconds)
        return await ask(self, url, body, headers, seconds, provider)

    monkeypatch.setattr(GuardedClient, "ask", counted)
    server, channel = await open_provider(name)
    server.script = list(script)
    await channel.handle(message(name, timeout_seconds=10.0))
    assert len(given) == 2
    assert 0 < given[1] < 10.0


@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_503_of_a_proxy_in_front_is_tried_again(open_provider, message, name):
    server, channel = await open_provider(name)
    server.script = [web.Response(status=503, text="<html>no</html>")]
    failure = await failure_of(channel.handle(message(name)))
    assert isinstance(failure, Transient)
    assert failure.code.endswith("_HTTP_503")


@pytest.mark.parametrize("name", PROVIDERS)
async def test_nobody_listens(open_provider, message, name):
    server, _ = await open_provider(name)
    server.port = 9  # discard: nobody there
    channel = PROVIDERS[name][1](server)
    failure = await failure_of(channel.handle(message(name)))
    assert isinstance(failure, Transient)
    assert failure.code in {f"{_prefix(name)}_UNREACHABLE", "FCM_NO_TOKEN"}
    await channel.close()


def _prefix(name):
    return {"PUSH": "FCM", "SMS": "TWILIO"}.get(name, name)


async def test_fcm_gets_what_people_see_our_id_and_the_time_that_is_left(open_provider, message):
    server, channel = await open_provider("PUSH")
    began = 1_800_000_000_000
    await channel.handle(
        message("PUSH", priority="URGENT", metadata={"order": 7, "from": "x"}, began_millis=began,
                expires_millis=began + 90_500)
    )  # fmt: skip
    [sent] = server.sent
    assert sent["notification"] == {"title": "Hello", "body": "Hello Ada"}
    assert sent["data"] == {"order": "7", "ulakId": message("PUSH").id}
    assert sent["android"] == {"ttl": "90s", "priority": "HIGH"}
    assert sent["apns"]["headers"]["apns-expiration"] == str(began // 1000 + 90)
    assert sent["webpush"]["headers"]["TTL"] == "90"


@pytest.mark.parametrize(
    ("answer", "kind", "code"),
    [
        (fcm_error("UNREGISTERED"), RecipientGone, "FCM_UNREGISTERED"),
        (fcm_error("INVALID_ARGUMENT"), Permanent, "FCM_INVALID_ARGUMENT"),
        (fcm_error("SENDER_ID_MISMATCH"), Transient, "FCM_SENDER_ID_MISMATCH"),
        (fcm_error("INTERNAL"), Transient, "FCM_INTERNAL"),
        (fcm_error("UNAVAILABLE"), Transient, "FCM_UNAVAILABLE"),
        (fcm_error("UNAVAILABLE", Retry_After="7"), Throttled, "FCM_UNAVAILABLE"),
        (fcm_error("QUOTA_EXCEEDED", Retry_After="30"), Throttled, "FCM_QUOTA_EXCEEDED"),
    ],
    ids=str,
)
async def test_fcms_errors(open_provider, message, answer, kind, code):
    server, channel = await open_provider("PUSH")
    server.script = [answer]
    failure = await failure_of(channel.handle(message("PUSH")))
    assert (type(failure), failure.code) == (kind, code)


async def test_fcms_quota_waits_as_long_as_it_is_told_and_a_minute_if_it_is_not(open_provider, message):
    server, channel = await open_provider("PUSH")
    server.script = [fcm_error("QUOTA_EXCEEDED", Retry_After="30"), fcm_error("QUOTA_EXCEEDED")]
    waits = [(await failure_of(channel.handle(message("PUSH")))).retry_after_seconds for _ in range(2)]
    assert waits == [30.0, 60.0]


async def test_fcms_token_is_fetched_once_for_many_and_again_when_it_is_refused(open_provider, message):
    server, channel = await open_provider("PUSH")
    await asyncio.gather(*(channel.handle(message("PUSH")) for _ in range(20)))
    assert server.tokens_given == 1
    server.token = "ya29.second"
    failure = await failure_of(channel.handle(message("PUSH")))
    assert (type(failure), failure.code) == (Transient, "FCM_UNAUTHENTICATED")
    await channel.handle(message("PUSH"))
    assert server.tokens_given == 2


async def test_twilio_gets_the_form_it_documents(open_provider, message):
    server, channel = await open_provider("SMS", status_callback="https://ulak.example.org/receipts/twilio")
    receipt = await channel.handle(message("SMS", began_millis=1000, expires_millis=61_999))
    assert server.messages == [
        {
            "To": "+905550001122",
            "From": "+15005550006",
            "Body": "Hello Ada",
            "ValidityPeriod": "60",
            "StatusCallback": "https://ulak.example.org/receipts/twilio",
        }
    ]
    assert receipt.provider_id.startswith("twilio:SM")


async def test_a_messaging_service_sends_instead_of_a_number(open_provider, message):
    server, channel = await open_provider("SMS", sender="MGservice")
    await channel.handle(message("SMS"))
    assert server.messages[0]["MessagingServiceSid"] == "MGservice"
    assert "From" not in server.messages[0]


@pytest.mark.parametrize(
    ("answer", "kind", "code"),
    [
        (twilio_error(21211), RecipientGone, "TWILIO_INVALID_NUMBER"),
        (twilio_error(21610), RecipientGone, "TWILIO_UNSUBSCRIBED"),
        (twilio_error(21408), Permanent, "TWILIO_REGION_NOT_ALLOWED"),
        (twilio_error(20003, 401), Transient, "TWILIO_AUTH"),
        (twilio_error(20429, 429, Retry_After="3"), Throttled, "TWILIO_RATE_LIMIT"),
        (twilio_error(12345), Permanent, "TWILIO_12345"),
        (twilio_error(20500, 500), Transient, "TWILIO_20500"),
    ],
    ids=str,
)
async def test_twilios_errors(open_provider, message, answer, kind, code):
    server, channel = await open_provider("SMS")
    server.script = [answer]
    failure = await failure_of(channel.handle(message("SMS")))
    assert (type(failure), failure.code) == (kind, code)


async def test_whatsapp_sends_text_to_who_wrote_lately_and_a_template_to_others(open_provider, message):
    server, channel = await open_provider("WHATSAPP")
    server.wrote = {"905550001122"}
    await channel.handle(message("WHATSAPP"))
    server.wrote = set()
    await channel.handle(message("WHATSAPP", body="two\nlines"))
    text, template = server.sent
    assert text["text"]["body"] == "Hello Ada"
    assert template["template"]["components"][0]["parameters"] == [{"type": "text", "text": "two lines"}]
    assert template["biz_opaque_callback_data"] == message("WHATSAPP").id


async def test_whatsapp_sends_the_template_that_the_address_asks_for(open_provider, message):
    server, channel = await open_provider("WHATSAPP")
    wanted = {"template": "alarm", "language": "tr", "parameters": ["Ayşe", 7]}
    await channel.handle(message("WHATSAPP", target_meta=wanted))
    [sent] = server.sent
    assert sent["template"]["language"] == {"code": "tr"}
    assert [one["text"] for one in sent["template"]["components"][0]["parameters"]] == ["Ayşe", "7"]


async def test_whatsapp_without_a_template_gives_up_outside_the_window(open_provider, message):
    _, channel = await open_provider("WHATSAPP", template="")
    failure = await failure_of(channel.handle(message("WHATSAPP")))
    assert (type(failure), failure.code) == (Permanent, "WHATSAPP_WINDOW_CLOSED")


@pytest.mark.parametrize(
    ("answer", "kind", "code"),
    [
        (graph_error(130429, 429), Throttled, "WHATSAPP_RATE_LIMIT"),
        (graph_error(131056), Throttled, "WHATSAPP_PAIR_LIMIT"),
        (graph_error(190, 401), Transient, "WHATSAPP_AUTH"),
        (graph_error(131016, 503), Transient, "WHATSAPP_UNAVAILABLE"),
        (graph_error(131026), RecipientGone, "WHATSAPP_UNDELIVERABLE"),
        (graph_error(132001, 404), Permanent, "WHATSAPP_TEMPLATE_UNKNOWN"),
        (graph_error(135000), Permanent, "WHATSAPP_135000"),
    ],
    ids=str,
)
async def test_whatsapps_errors(open_provider, message, answer, kind, code):
    server, channel = await open_provider("WHATSAPP")
    server.script = [answer]
    failure = await failure_of(channel.handle(message("WHATSAPP")))
    assert (type(failure), failure.code) == (kind, code)


async def test_slacks_text_calls_nobody_and_blocks_pass(open_provider, message):
    server, channel = await open_provider("SLACK")
    blocks = [{"type": "divider"}]
    receipt = await channel.handle(message("SLACK", body="<!channel> a & b", metadata={"blocks": blocks}))
    assert server.sent == [{"channel": "C024BE91L", "text": "Hello\n&lt;!channel&gt; a &amp; b", "blocks": blocks}]
    assert receipt.provider_id == "slack:1503435956.000001"


async def test_slacks_incoming_webhooks_need_no_token(open_provider, message):
    server, channel = await open_provider("SLACK", token="")
    receipt = await channel.handle(message("SLACK", recipient=f"{server.url}/services/T/B/x"))
    assert server.sent == [{"text": "Hello\nHello Ada"}]
    assert receipt.provider_id == f"slack:{message('SLACK').id}"
    failure = await failure_of(channel.handle(message("SLACK")))
    assert failure.code == "SLACK_NOT_CONFIGURED"


@pytest.mark.parametrize(
    ("answer", "kind", "code"),
    [
        (told(200, {"ok": False, "error": "channel_not_found"}), RecipientGone, "SLACK_CHANNEL_NOT_FOUND"),
        (told(200, {"ok": False, "error": "invalid_auth"}), Transient, "SLACK_INVALID_AUTH"),
        (told(200, {"ok": False, "error": "internal_error"}), Transient, "SLACK_INTERNAL_ERROR"),
        (told(200, {"ok": False, "error": "msg_too_long"}), Permanent, "SLACK_MSG_TOO_LONG"),
        (told(429, {"ok": False, "error": "ratelimited"}, Retry_After="12"), Throttled, "SLACK_RATE_LIMIT"),
    ],
    ids=str,
)
async def test_slacks_errors(open_provider, message, answer, kind, code):
    server, channel = await open_provider("SLACK")
    server.script = [answer]
    failure = await failure_of(channel.handle(message("SLACK")))
    assert (type(failure), failure.code) == (kind, code)


async def test_a_slack_webhook_on_a_private_address_is_not_called(open_provider, message):
    server, _ = await open_provider("SLACK")
    channel = SlackChannel(SlackOptions(url=server.url))
    failure = await failure_of(channel.handle(message("SLACK", recipient=f"{server.url}/services/x")))
    assert (type(failure), failure.code, server.asked) == (Permanent, "SLACK_BLOCKED", [])
    await channel.close()


def test_a_service_account_that_is_none_is_told_without_its_key():
    from ulak.errors import Misconfigured

    account = json.loads(FcmServer().account()) | {"private_key": "-----BEGIN PRIVATE KEY-----\nplanted\n-----END"}
    for text in ("planted", json.dumps(account)):
        with pytest.raises(Misconfigured) as caught:
            FcmChannel(FcmOptions(text))
        assert "planted" not in str(caught.value)
    assert google.FCM_ERROR
