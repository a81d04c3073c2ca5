"""A real server on a free loopback port, in the test's own loop, and a client that speaks JSON to it."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import Any

import aiohttp
from yarl import URL

from ulak import Permanent, Ulak
from ulak.access.keys import keep_key, make_key
from ulak.http.app import Door, build_app
from ulak.http.server import address_of, listen, listening
from ulak.settings import load


@dataclass
class Answer:
    status: int
    body: Any
    headers: dict[str, str]
    text: str


@dataclass
class Served:
    ulak: Ulak
    door: Door
    address: str
    session: aiohttp.ClientSession
    key: str | None = None  # sent where a request names none

    async def ask(self, method, path, body=..., *, key=None, headers=None, data=None) -> Answer:
        sent = dict(headers or {})
        if key is not None or self.key is not None:
            sent["authorization"] = f"Bearer {key or self.key}"
        options = {"data": data} if data is not None else {} if body is ... else {"json": body}
        url = URL(self.address + path, encoded=True)  # sent as the test writes it
        async with self.session.request(method, url, headers=sent, **options) as response:
            text = await response.text()
            is_json = response.content_type == "application/json" and text
            return Answer(response.status, await response.json() if is_json else None, dict(response.headers), text)

    async def get(self, path, **options) -> Answer:
        return await self.ask("GET", path, **options)

    async def post(self, path, body=..., **options) -> Answer:
        return await self.ask("POST", path, body, **options)

    async def enqueue(self, kind="mail", payload=None, **options) -> str:
        answer = await self.post("/api/jobs", {"kind": kind, "payload": payload, **options})
        assert answer.status == 202, answer.text
        return answer.body["id"]

    async def make_key(self, *scopes) -> str:
        made = make_key("test", list(scopes), self.ulak.clock.now())
        await self.ulak.store.write(keep_key, made.key)
        await self.door.ring.load(self.ulak.store)
        return made.token

    async def settled(self, identifier, status="done") -> dict:
        """Follow a job until it has the status; commits wake us, so nothing is slept away."""
        async with asyncio.timeout(10):
            with self.ulak.loops.watching() as news:
                while True:
                    news.clear()
                    found = (await self.get(f"/api/jobs/{identifier}")).body
                    if found["status"] == status:
                        return found
                    await news.wait()


def settings_for(**overrides):
    return load(overrides={"store": "memory:", "http.port": 0, **overrides}).settings


@contextlib.asynccontextmanager
async def serving(prepare=None, *, work=True, **overrides):
    """`serving(**{"http.max_body_bytes": 2000})`. `prepare` may declare handlers before the Ulak is opened."""
    ulak = Ulak(settings=settings_for(**overrides), work=work)
    if prepare is not None:
        prepare(ulak)
    with contextlib.closing(listen(ulak.settings.http)) as listener:
        async with ulak:
            door = build_app(ulak)
            async with door.life(), listening(door, listener), aiohttp.ClientSession() as session:
                yield Served(ulak, door, address_of(listener), session)


def with_deaths(ulak: Ulak) -> None:
    """A kind that works and one that dies at once."""

    @ulak.handles("mail")
    async def mail(job):
        return {"sent": True}

    @ulak.handles("doomed")
    async def doomed(job):
        raise Permanent(f"no mailbox for {job.payload['to']}")
