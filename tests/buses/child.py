"""A process that takes requests from Kafka: each becomes a job, once. Told so, it kills itself at a chosen place.

Arguments: the address, the brokers, the group, the topic, `live` or where to die: `before_offsets`, `before_cursor`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

import msgspec
import structlog

from ulak import NewJob, Ulak
from ulak.settings import Settings


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


# What it prints is for the test that started it.
structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))


async def serve(address: str, servers: str, group: str, topic: str, fate: str) -> None:
    bus = {"kind": "kafka", "kafka": {"servers": servers, "group": group}}
    ulak = Ulak(address, settings=Settings(store=address, bus=bus))

    async def accept(bodies: list[bytes], origin: str | None = None) -> list[Any]:
        found = [msgspec.json.decode(body) for body in bodies]
        ids = await ulak.enqueue_many([NewJob("asked.for", one, unique_key=str(one["n"])) for one in found])
        if fate == "before_offsets":
            die()
        for one in found:
            await ulak.bus.publish(f"{topic}.out", one, key=str(one["n"]))
        return ids

    async def keep(body: bytes, place: str, partition: int, offset: int) -> None:
        await ulak.enqueue("kept.bytes", {"offset": offset}, unique_key=f"{place}/{partition}/{offset}")

    ulak.bus.accept_from(topic, accept, keep)
    async with ulak:
        if fate == "before_cursor":
            _die_after_produce(ulak)
        print("ready", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)


def _die_after_produce(ulak: Ulak) -> None:
    produce = ulak.bus._bus.produce

    async def produce_and_die(messages):
        await produce(messages)
        die()

    ulak.bus._bus.produce = produce_and_die


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:]))
