"""What the room's flows need: an Ulak on each kind of store, a channel that answers as told, and real counterparts."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.channels.conftest import mail_server, receiver  # noqa: F401 - fixtures
from tests.postgres_server import fresh_database
from ulak import Ulak, rooms
from ulak.channels.channel import Message, Receipt
from ulak.settings import Settings

STORES = ["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.fixture(params=STORES)
def address(request, tmp_path):
    """The address of an empty store, of each kind in turn."""
    with contextlib.ExitStack() as stack:
        yield {
            "memory": lambda: "memory:",
            "sqlite": lambda: f"sqlite:///{tmp_path}/ulak.db",
            "postgres": lambda: stack.enter_context(fresh_database()),
        }[request.param]()


@pytest.fixture
def make(address, clock) -> Callable[..., Ulak]:
    """An Ulak on the store and the clock of this test; settings by section: make(notify={"capacity": 5})."""
    return lambda **sections: build(address, clock, **sections)


@pytest.fixture
def make_in_memory(clock) -> Callable[..., Ulak]:
    return lambda **sections: build("memory:", clock, **sections)


def build(address: str, clock: Any, *, work: bool = True, **sections: dict[str, Any]) -> Ulak:
    return Ulak(address, settings=Settings(store=address, **sections), clock=clock, work=work)


@dataclass
class Scripted:
    """Carries every type; answers what it is told to, in turn, and remembers what it was given."""

    answers: list[Any] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event | None = None
    name: str = "scripted"

    def can_handle(self, notification_type: str) -> bool:
        return notification_type in {"EMAIL", "SMS", "PUSH", "SCRIPTED"}

    async def handle(self, message: Message) -> Receipt:
        self.messages.append(message)
        self.begun.set()
        if self.release is not None:
            await self.release.wait()
        answer = self.answers.pop(0) if self.answers else Receipt("provider-1")
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def close(self) -> None: ...

    @property
    def bodies(self) -> list[str]:
        return [message.body for message in self.messages]


@pytest.fixture
def channel(monkeypatch) -> Scripted:
    """Stands where an installed channel would: before the built-in ones."""
    scripted, discover = Scripted(), rooms.discover
    monkeypatch.setattr(rooms, "discover", lambda *given, **named: [scripted, *discover(*given, **named)])
    return scripted
