"""What leaves over HTTP, its bytes read by another library (h11): no text becomes a header or a second request."""

from __future__ import annotations

import asyncio
import contextlib
import json

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ulak.channels.channel import Message
from ulak.channels.signature import Secret, new_secret
from ulak.channels.slack import SlackChannel, SlackOptions
from ulak.channels.twilio import TwilioChannel, TwilioOptions
from ulak.channels.webhook import WebhookChannel, WebhookOptions
from ulak.channels.whatsapp import WhatsappChannel, WhatsappOptions
from ulak.errors import Failure

LOOPBACK = ("127.0.0.0/8",)
SECRETS = [Secret(new_secret())]
SECOND = "\r\nx-evil: 1\r\n\r\nGET /second HTTP/1.1\r\nhost: x\r\n\r\n"
TEXTS = st.text(max_size=40) | st.sampled_from([SECOND, "\n x: y", "a\x00b", "\u2028", "ğ\x85", "%0d%0aX: y", "?/../#"])
NAMES = st.sampled_from(["X-A", "Authorization", "Host", "Content-Length", "Transfer-Encoding", "a\r\nb"]) | TEXTS
CHANNELS = {
    "WEBHOOK": lambda _: WebhookChannel(WebhookOptions(allow=LOOPBACK), secrets=lambda _: SECRETS),
    "SMS": lambda url: TwilioChannel(TwilioOptions("AC1", "+15005550006", "user", "word", url=url, allow=LOOPBACK)),
    "WHATSAPP": lambda url: WhatsappChannel(WhatsappOptions("1", "token", url=url, allow=LOOPBACK)),
    "SLACK": lambda url: SlackChannel(SlackOptions("token", url=url, allow=LOOPBACK)),
}
OURS = {
    "host", "content-type", "content-length", "user-agent", "accept", "accept-encoding", "authorization",
    "webhook-id", "webhook-timestamp", "webhook-signature",
}  # fmt: skip


class Wire:
    """Keeps what comes on each connection, and answers the first request there."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        data = part = await reader.read(65536)
        while part and not is_whole(data):
            data += (part := await reader.read(65536))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
        writer.close()
        if data:
            self.heard.append(data)


def is_whole(data: bytes) -> bool:
    with contextlib.suppress(h11.RemoteProtocolError):
        return any(isinstance(event, h11.EndOfMessage) for event in read(data))
    return True  # what can't be read is read again by the test


def read(data: bytes) -> list[h11.Event]:
    wire, events = h11.Connection(h11.SERVER), []
    wire.receive_data(data)
    while (event := wire.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
        events.append(event)
    assert wire.trailing_data[0] == b"" or not events, "something follows the request"
    return events


async def heard_of(message: Message) -> list[bytes]:
    wire = Wire()
    async with await asyncio.start_server(wire.serve, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        channel = CHANNELS[message.notification_type](url)
        recipient = message.recipient.replace("http://receiver", url)
        with contextlib.suppress(Failure):  # refused before it was sent, or an answer that means nothing to it
            await channel.handle(replace(message, recipient=recipient))
        await channel.close()
    return wire.heard


@pytest.mark.parametrize("name", CHANNELS)
def test_no_text_becomes_a_header_or_a_second_request(name):
    lengths = []

    @given(
        recipient=TEXTS,
        subject=TEXTS,
        body=TEXTS,
        metadata=st.dictionaries(TEXTS, TEXTS, max_size=2),
        headers=st.dictionaries(NAMES, TEXTS, max_size=2),
    )
    def run(recipient, subject, body, metadata, headers):
        message = Message(
            id="0190a1b2-c3d4-8e5f-a6b7-756c616b0001", notification_type=name, subject=subject, body=body,
            recipient=f"http://receiver/{recipient}" if name == "WEBHOOK" else recipient, created_millis=0,
            idempotency_key="k", metadata=metadata, target_meta={"headers": headers},
        )  # fmt: skip
        for data in asyncio.run(heard_of(message)):
            request, *parts = read(data)
            lengths.append(len(data))
            names = [key.decode() for key, _ in request.headers]
            own = {key.lower() for key in headers} if name == "WEBHOOK" else set()
            assert len(names) == len(set(names))
            assert OURS | own >= set(names)
            assert request.target.startswith(b"/")
            if name == "WEBHOOK":
                sent = json.loads(b"".join(part.data for part in parts[:-1]))
                assert (sent["subject"], sent["body"], sent["metadata"]) == (subject, body, metadata)

    run()
    assert lengths, "nothing was sent at all"
