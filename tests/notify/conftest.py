"""What the room's flows need: an Ulak on each kind of store, a channel that answers as told, and real counterparts."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.channels.conftest import mail_server, receiver  # noqa: F401 - fixtures
from tests.postgres_server import fresh_database
from ulak import Ulak
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
def own_channels() -> list[Any]:
    """What the Ulaks of this test have before the built-in channels."""
    return []


@pytest.fixture
def make(address, clock, own_channels) -> Callable[..., Ulak]:
    """An Ulak on the store and the clock of this test; settings by section: make(notify={"capacity": 5})."""
    return lambda **sections: build(address, clock, own=own_channels, **sections)


@pytest.fixture
def make_in_memory(clock, own_channels) -> Callable[..., Ulak]:
    return lambda **sections: build("memory:", clock, own=own_channels, **sections)


def build(address: str, clock: Any, *, work: bool = True, own: Sequence[Any] = (), **sections: dict[str, Any]) -> Ulak:
    return Ulak(address, settings=Settings(store=address, **sections), clock=clock, work=work, channels=own)


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
def channel(own_channels) -> Scripted:
    """Stands where a user's own channel does: before the built-in ones."""
    scripted = Scripted()
    own_channels.append(scripted)
    return scripted
