"""Every way to name a place that must not be called, through every channel that calls a recipient's own address."""

from __future__ import annotations

import pytest
from aiohttp import web

from tests.channels.test_push_channel import Browser, _new_key
from tests.channels.test_ssrf_guard import PRIVATE_V4, PRIVATE_V6, wrappings
from tests.providers.server import ProviderServer, serving
from ulak.channels.slack import SlackChannel, SlackOptions
from ulak.channels.webhook import WebhookChannel
from ulak.channels.webpush import WebPushChannel, WebPushOptions
from ulak.errors import Failure

# Spellings of 127.0.0.1, ::1 and of a cloud's metadata service that some parsers take.
SPELLINGS = [
    "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "017700000001", "127.1", "127.0.1", "0x7f.0x0.0x0.0x1",
    "127.000.000.001", "127.0.0.1.", "localhost", "LOCALHOST", "localhost.", "2852039166", "0xa9fea9fe",
    "169.254.43518",
    "①②⑦.⓪.⓪.①", "127。0。0。1", "127%2e0%2e0%2e1", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]", "[::1%25lo]",
    "[::]", "0", "0.0", "0x0", "127.0.0.1%00.example.org", "127.0.0.1#@example.org", "example.org@127.0.0.1",
    "127.0.0.1\\@example.org", "127.0.0.1&@example.org", "a:b@127.0.0.1", "[::1]]", "[[::1]]", "127.0.0.1 ",
]  # fmt: skip
ODD_URLS = [
    "file:///etc/passwd", "gopher://127.0.0.1/", "ftp://127.0.0.1/", "dict://127.0.0.1/", "jar:http://127.0.0.1!/",
    "unix:///run/docker.sock", "http:127.0.0.1", "http:/127.0.0.1", "///127.0.0.1", "//127.0.0.1/",
    "http://", "https://", "http://:80/", "http://?", "http://#", "\thttp://127.0.0.1/", "http://127.0.0.1\r\nHost: x/",
]  # fmt: skip


def hosts() -> list[str]:
    v4 = [*PRIVATE_V4, *(text for one in PRIVATE_V4 for text in map("[{}]".format, wrappings(one).values()))]
    return [*v4, *(f"[{one}]" for one in PRIVATE_V6), *SPELLINGS]


class Trap(ProviderServer):
    async def usual(self, request, asked):
        return web.Response(text="ok")


@pytest.fixture
async def trap():
    async with serving(Trap()) as made:
        yield made


CHANNELS = {
    "WEBHOOK": WebhookChannel,
    "SLACK": lambda: SlackChannel(SlackOptions()),
    "WEBPUSH": lambda: WebPushChannel(WebPushOptions(_new_key(), "mailto:ops@example.org")),
}


@pytest.mark.parametrize("name", CHANNELS)
async def test_nothing_of_the_corpus_is_called(trap, write, name):
    urls = [f"http://{host}:{trap.port}/" for host in hosts()] + [url for url in ODD_URLS if "://" in url]
    assert len(urls) >= 140  # times three channels
    channel, keys, called = CHANNELS[name](), Browser().keys, []
    for url in urls:
        message = write(url, notification_type=name, target_meta={"keys": keys}, timeout_seconds=2.0)
        try:
            await channel.handle(message)
            called.append(url)
        except Failure as failure:
            assert failure.code in {f"{name}_BLOCKED", f"{name}_INVALID_URL", f"{name}_UNREACHABLE"}, url  # noqa: PT017
    await channel.close()
    assert (called, trap.asked) == ([], [])
