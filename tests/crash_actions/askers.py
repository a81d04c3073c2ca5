"""The rule service: asks for plans over HTTP and over Kafka without a pause, and repeats some of what it asked."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from confluent_kafka import Producer

TOPIC = "cinga.action.requested"
PAUSE_SECONDS = 0.02
REPEATED = 0.05
TIMEOUT = aiohttp.ClientTimeout(total=10)


@dataclass
class Asker:
    """`asked` are the keys that somebody has said yes to: our door with 202, or the brokers."""

    address: str
    servers: list[str]
    chance: random.Random
    plan: int = 0
    asked: set[str] = field(default_factory=set)
    repeats: int = 0
    stopping: bool = False

    async def run(self, rate: float) -> None:
        """Each request is asked for until it is answered."""
        producer = Producer(
            {"bootstrap.servers": ",".join(self.servers), "acks": "all", "enable.idempotence": True, "log_level": 0}
        ) if self.servers else None  # fmt: skip
        asking: set[asyncio.Task[None]] = set()
        number = 0
        async with aiohttp.ClientSession(timeout=TIMEOUT) as session:
            while not self.stopping:
                again = bool(self.asked) and self.chance.random() < REPEATED
                self.repeats += again
                number += not again
                key = self.chance.choice(sorted(self.asked)[-50:]) if again else f"e-{number}"
                if producer is not None and self.chance.random() < 0.5:
                    producer.produce(TOPIC, self._request(key), key=b"D1", on_delivery=self._kept(key))
                    producer.poll(0)
                else:
                    asking.add(asyncio.create_task(self._ask(session, key)))
                await asyncio.sleep(1 / rate)
            await asyncio.gather(*asking)
        if producer is not None:
            await asyncio.to_thread(producer.flush, 60)

    def _request(self, key: str) -> bytes:
        variables = {"n": key.partition("-")[2]}
        data = {"action_plan_id": self.plan, "evaluation_key": key, "variables": variables}
        meta, context = {"trace_id": key}, {"device_id": "D1", "stream_id": 1}
        return json.dumps({"meta": meta, "context": context, "data": data}).encode()

    def _kept(self, key: str) -> Any:
        def told(error: Any, _: Any) -> None:
            if error is None:
                self.asked.add(key)

        return told

    async def _ask(self, session: aiohttp.ClientSession, key: str) -> None:
        while True:
            try:
                url = f"{self.address}/api/actions/requests"
                async with session.post(url, data=self._request(key)) as answer:
                    if answer.status == 202:
                        self.asked.add(key)
                        return
            except (aiohttp.ClientError, TimeoutError, OSError):
                pass
            await asyncio.sleep(PAUSE_SECONDS)
