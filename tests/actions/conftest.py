"""What the room's flows need: an Ulak on each kind of store, a channel that answers as told, and a small world."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.channels.conftest import mail_server, receiver  # noqa: F401 - fixtures
from tests.postgres_server import fresh_database
from ulak import Ulak
from ulak.channels.channel import Message, Receipt
from ulak.settings import Settings
from ulak.testing import advance, drain

STORES = ["memory", pytest.param("postgres", marks=pytest.mark.postgres)]
TYPES = {"EMAIL", "SMS", "PUSH", "WHATSAPP", "SLACK", "WEBHOOK"}


@pytest.fixture(params=STORES)
def address(request):
    """The address of an empty store, of each kind in turn."""
    with contextlib.ExitStack() as stack:
        yield {"memory": lambda: "memory:", "postgres": lambda: stack.enter_context(fresh_database())}[request.param]()


@dataclass
class Scripted:
    """Carries every type; answers what it is told to, in turn, and remembers what it was given."""

    answers: list[Any] = field(default_factory=list)
    by_recipient: dict[str, Any] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    clock: Any = None
    seconds: float = 0.0  # that each answer takes
    name: str = "scripted"

    def can_handle(self, notification_type: str) -> bool:
        return notification_type in TYPES

    async def handle(self, message: Message) -> Receipt:
        self.messages.append(message)
        if self.seconds:
            self.clock.advance(self.seconds)
        answer = self.by_recipient.get(message.recipient)
        if answer is None and self.answers:
            answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer or Receipt(f"fcm:{len(self.messages)}")

    async def close(self) -> None: ...

    @property
    def bodies(self) -> list[str]:
        return [message.body for message in self.messages]

    @property
    def recipients(self) -> list[str]:
        return [message.recipient for message in self.messages]


@pytest.fixture
def channel(clock) -> Scripted:
    return Scripted(clock=clock)


@pytest.fixture
def make(address, clock, channel) -> Callable[..., Ulak]:
    """An Ulak on the store and the clock of this test; settings by section: make(actions={"capacity": 5})."""
    return lambda **sections: build(address, clock, channel, **sections)


@pytest.fixture
def make_in_memory(clock, channel) -> Callable[..., Ulak]:
    return lambda **sections: build("memory:", clock, channel, **sections)


def build(address: str, clock: Any, channel: Any, *, work: bool = True, **sections: dict[str, Any]) -> Ulak:
    settings = Settings(store=address, **sections)
    return Ulak(address, settings=settings, clock=clock, work=work, channels=[channel])


class World:
    """A plan with its people, in few words."""

    def __init__(self, ulak: Ulak) -> None:
        self.ulak = ulak
        self.number = 0
        self.seen = 0

    async def plan(self, *steps: dict[str, Any], **more: Any) -> int:
        numbered = [{"step_order": place, "body": "b", **step} for place, step in enumerate(steps, 1)]
        _, plan = await self.ulak.actions.plans.create({"name": "Pump", "steps": numbered, **more})
        return plan.id

    async def person(self, *channels: tuple[str, str], verified: bool = True, **profile: Any) -> int:
        made = await self.ulak.actions.directory.create_profile({"name": "Ada", **profile})
        for channel_type, target in channels:
            one = await self.ulak.actions.directory.create_channel(
                {"profile_id": made.id, "channel_type": channel_type, "target": target}
            )
            if verified:
                await self.ulak.actions.directory.trust(one.id)
        return made.id

    async def route(self, plan: int, profile: int, step_order: int = 1, **more: Any) -> int:
        made = await self.ulak.actions.directory.create_route(
            {"action_plan_id": plan, "step_order": step_order, "recipient_profile_id": profile, **more}
        )
        return made.id

    async def ready(self, *steps: dict[str, Any], channels: Any = (("push", "token-1"),), **profile: Any) -> int:
        """A plan whose every step is for one person."""
        plan = await self.plan(*steps)
        person = await self.person(*channels, **profile)
        for place in range(1, len(steps) + 1):
            await self.route(plan, person, place)
        return plan

    async def ask(self, plan: int, **more: Any) -> Any:
        self.number += 1
        return await self.ulak.actions.request(plan, f"evaluation-{self.number}", **{"device_id": "D1", **more})

    async def run(self, plan: int, **more: Any) -> dict[str, Any]:
        """Ask, let everything that is due happen, and look."""
        identifier = await self.ask(plan, **more)
        await drain(self.ulak)
        return await self.look(identifier)

    async def look(self, identifier: Any, *, after_seconds: float | None = None) -> dict[str, Any]:
        if after_seconds is not None:
            await advance(self.ulak, after_seconds)
        return await self.ulak.actions.run(identifier)

    async def caught_up(self) -> None:
        """On PostgreSQL events are numbered after their commit: wait until the log has one that is newer than all."""
        await self.ulak.write(lambda tx: tx.emit("test.mark", 0, "test"))
        while not any(event.name == "test.mark" for event in await self.ulak.jobs.events(self.seen, 10_000)):
            await asyncio.sleep(0.005)
        self.seen = (await self.ulak.jobs.events(self.seen, 10_000))[-1].seq

    async def topics(self, topic: str | None = None) -> list[dict[str, Any]]:
        await self.caught_up()
        return [one["value"] for one in (await self.ulak.actions.messages(topic=topic, limit=1000))[0]]


@pytest.fixture
def world() -> type[World]:
    return World


def states(run: dict[str, Any]) -> list[str]:
    return [step["state"] for step in run["steps"]]
