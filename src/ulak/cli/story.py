"""The story behind `ulak serve --demo`: one town in which every room works, seeded and simulated."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import structlog

from ulak.app import Ulak
from ulak.compute import Task, TaskType
from ulak.errors import Error
from ulak.settings import Settings
from ulak.settings.changes import ListSource, Rule

log = structlog.get_logger("ulak.demo")

FEED, COMPANIES = "companies", 300
HELPERS = ("Ahmet", "Berat", "Ceren", "Deniz", "Elif", "Ferit", "Gizem", "Hakan", "Irmak", "Jale")
SILENT = frozenset({"Ferit", "Jale"})
TOWN = (40.9900, 29.0290)
NEEDS = ("groceries", "pharmacy", "a walk", "a lift", "a broken lamp")
PLAN = "Water leak (simulated)"
DARK = "http://127.0.0.1:9/hooks/turna"  # nobody listens there: a provider that is dark
SCRIPT = '''"""Counts primes, so that there is something to run."""


def main(params, context):
    most = params["most"]
    return sum(all(number % divisor for divisor in range(2, int(number**0.5) + 1)) for number in range(2, most))
'''


def with_story(settings: Settings) -> Settings:
    """A company list, a folder of scripts, and a loopback that webhooks may reach; all below the changes folder."""
    folder = Path(settings.changes.folder).absolute() / "demo"
    source = ListSource(
        name=FEED,
        format="csv",
        url=(folder / "companies.csv").as_uri(),
        key="vkn",
        fields={"title": "title", "city": "city"},
    )
    rule = Rule(feed=FEED, change="modified", kind="demo.company_changed")
    changes = settings.changes.model_copy(
        update={"registry": (*settings.changes.registry, source), "rule": (*settings.changes.rule, rule)}
    )
    webhook = settings.channels.webhook.model_copy(update={"allow": [*settings.channels.webhook.allow, "127.0.0.0/8"]})
    return settings.model_copy(
        update={
            "changes": changes,
            "compute": settings.compute.model_copy(update={"script_root": str(folder)}),
            "channels": settings.channels.model_copy(update={"webhook": webhook}),
        }
    )


class Story:
    """Every scene repeats at its own pace; one that fails is logged and tried at its next time."""

    def __init__(self, ulak: Ulak) -> None:
        self._ulak = ulak
        self._random = random.Random(7)
        self._folder = Path(ulak.settings.changes.folder).absolute() / "demo"
        self._plan = 0
        self._scenes = 0

    async def run(self) -> None:
        await self._prepare()
        scenes: tuple[tuple[float, Callable[[], Awaitable[None]]], ...] = (
            (20, self._publish_list),
            (2, self._send_message),
            (3, self._ask_for_help),
            (1, self._answer_offers),
            (5, self._trip_sensor),
            (6, self._run_script),
            (8, self._meet_the_dark),
        )
        await asyncio.gather(*(self._repeat(seconds, scene) for seconds, scene in scenes))

    async def _repeat(self, seconds: float, scene: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await scene()
            except Error as error:
                log.info("scene_failed", scene=scene.__name__, error=str(error))
            await self._ulak.clock.wait(asyncio.Event(), seconds)

    async def _prepare(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / "primes.py").write_text(SCRIPT, encoding="utf-8")
        for name in HELPERS:
            latitude, longitude = self._somewhere()
            await self._ulak.dispatch.put_helper(name.lower(), name=name, latitude=latitude, longitude=longitude)
        self._plan = await self._make_plan()

    async def _make_plan(self) -> int:
        actions = self._ulak.actions
        for head, known in await actions.plans.list():
            if known.name == PLAN:
                return head.id
        steps = [
            {"step_order": 1, "channel_type": "push", "body": "Water in {{ variables.room }}"},
            {
                "step_order": 2,
                "channel_type": "email",
                "subject": "Leak",
                "body": "Sensor {{ variables.room }} is wet.",
            },
            {"step_order": 3, "channel_type": "audit", "body": "told about {{ variables.room }}"},
        ]
        plan, _ = await actions.plans.create({"name": PLAN, "critical": True, "steps": steps})
        profile = await actions.directory.create_profile({"name": "On call", "status": True, "priority": 1})
        for channel_type, target in (("push", "demo-device-token-0001"), ("email", "oncall@example.com")):
            channel = await actions.directory.create_channel(
                {"profile_id": profile.id, "channel_type": channel_type, "target": target}
            )
            await actions.directory.trust(channel.id)
        for order in (1, 2):
            await actions.directory.create_route(
                {"action_plan_id": plan.id, "step_order": order, "recipient_profile_id": profile.id}
            )
        return plan.id

    def _somewhere(self) -> tuple[float, float]:
        return TOWN[0] + self._random.uniform(-0.006, 0.006), TOWN[1] + self._random.uniform(-0.008, 0.008)

    # Scenes

    async def _publish_list(self) -> None:
        """A company list is published again, with a few changes."""
        self._scenes += 1
        rows = [
            f"{1_000_000_000 + number},Company {number}{' A.Ş.' if number % 50 == self._scenes % 50 else ''},Istanbul"
            for number in range(COMPANIES + self._scenes % 5)
        ]
        (self._folder / "companies.csv").write_text("\n".join(["vkn,title,city", *rows]) + "\n", encoding="utf-8")
        await self._ulak.changes.start(FEED)

    async def _send_message(self) -> None:
        people = (("IN_APP", "ayse"), ("EMAIL", "ayse@example.com"), ("SMS", "+905551112233"))
        kind, recipient = self._random.choice(people)
        await self._ulak.notify.send(kind, recipient, "Merhaba Ayşe", subject="Ulak")

    async def _ask_for_help(self) -> None:
        latitude, longitude = self._somewhere()
        await self._ulak.dispatch.open(
            requesterId="ayse",
            category=self._random.choice(NEEDS),
            latitude=latitude,
            longitude=longitude,
            deadlineSeconds=20,
        )

    async def _answer_offers(self) -> None:
        """Neighbours accept, refuse or keep silent; who was assigned is done after a while."""
        for name in HELPERS:
            helper = name.lower()
            for offer in () if name in SILENT else await self._ulak.dispatch.offers(helper):
                answer = self._random.random()
                if answer < 0.3:
                    await self._ulak.dispatch.accept(offer.task, helper)
                elif answer < 0.5:
                    await self._ulak.dispatch.reject(offer.task, helper)
        for view in await self._ulak.dispatch.tasks(status="ASSIGNED"):
            if view.helper is not None and self._random.random() < 0.15:
                await self._ulak.dispatch.complete(view.task.id, view.helper)

    async def _trip_sensor(self) -> None:
        room = self._random.choice(["kitchen", "cellar", "roof"])
        await self._ulak.actions.request(
            self._plan, f"demo-{self._ulak.clock.now()}", device_id="400000011D081B70", variables={"room": room}
        )

    async def _run_script(self) -> None:
        most = self._random.randint(2_000, 40_000)
        await self._ulak.compute.submit(Task.create("primes.py", {"most": most}, TaskType.CPU_BOUND))

    async def _meet_the_dark(self) -> None:
        await self._ulak.notify.send("WEBHOOK", DARK, "Nobody is there.")
