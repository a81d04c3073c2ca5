"""Deliveries per second of the webhook channel: signed, guarded, 100 at a time, to a sink in another process.

    python bench/channels_webhook.py [--deliveries 20000] [--at-once 100]

Prints one JSON line per way of signing. `lost` is what the channel reported as delivered and the sink did not count.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import time
from multiprocessing.connection import Connection

import uvloop

from ulak.channels.channel import Message
from ulak.channels.signature import Secret, new_key_pair, new_secret
from ulak.channels.webhook import WebhookChannel, WebhookOptions


class Sink(asyncio.Protocol):
    """Answers 204 to every POST; only knows requests with a Content-Length, one at a time per connection."""

    taken = 0
    bad = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.buffer = b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, found, rest = self.buffer.partition(b"\r\n\r\n")
        if found and len(rest) >= int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]):
            Sink.taken += 1
            Sink.bad += b"webhook-signature: v1" not in head
            self.buffer = b""
            self.transport.write(b"HTTP/1.1 204 No Content\r\n\r\n")


def run_sink(pipe: Connection) -> None:
    async def serve() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Sink, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        while await loop.run_in_executor(None, pipe.recv):
            pipe.send((Sink.taken, Sink.bad))

    uvloop.run(serve())


def message(number: int, url: str) -> Message:
    return Message(
        id=f"0190a1b2-c3d4-8e5f-a6b7-{number:012d}",
        notification_type="WEBHOOK",
        recipient=url,
        subject="A sensor has tripped",
        body="The water level at station 4 is above the mark.",
        metadata={"station": 4, "level": 2.71},
        created_at=1_800_000_000_000,
        idempotency_key=str(number),
    )


async def deliver(url: str, secret: str, deliveries: int, at_once: int) -> float:
    secrets = [Secret(secret)]
    options = WebhookOptions(allow=("127.0.0.0/8",), connections=at_once)
    channel = WebhookChannel(options, secrets=lambda _url: secrets)
    numbers = iter(range(deliveries))

    async def work() -> None:
        for number in numbers:
            await channel.handle(message(number, url))

    started = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(at_once)))
    seconds = time.perf_counter() - started
    await channel.close()
    return deliveries / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deliveries", type=int, default=20_000)
    parser.add_argument("--at-once", type=int, default=100)
    options = parser.parse_args()
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    sink = multiprocessing.get_context("spawn").Process(target=run_sink, args=(theirs,), daemon=True)
    sink.start()
    url = f"http://127.0.0.1:{ours.recv()}/hooks"
    counted = 0
    for name, secret in (("v1", new_secret()), ("v1a", new_key_pair()[0])):
        rate = uvloop.run(deliver(url, secret, options.deliveries, options.at_once))
        ours.send(True)
        taken, bad = ours.recv()
        figures = {
            "deliveries_per_second": round(rate),
            "lost": options.deliveries - (taken - counted),
            "unsigned": bad,
        }
        print(json.dumps({"bench": "channels_webhook", "signature": name, "at_once": options.at_once, **figures}))
        counted = taken
    ours.send(False)
    sink.join()


if __name__ == "__main__":
    main()
