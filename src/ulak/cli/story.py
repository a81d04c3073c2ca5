"""The story behind `ulak serve --demo`: one town in which every room works, seeded and simulated."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from itertools import chain, repeat
from pathlib import Path

from ulak.actions.model import RecipientProfile
from ulak.app import Ulak
from ulak.cli.story_provider import DARK_SECONDS, LIT_SECONDS, DarkProvider
from ulak.cli.story_town import town_map
from ulak.compute import Task, TaskType
from ulak.errors import Error, Misconfigured
from ulak.log import get_logger
from ulak.settings import Settings
from ulak.settings.changes import ListSource, Rule
from ulak.spine.job import Job

log = get_logger("ulak.demo")

FEED, COMPANIES = "companies", 300
HELPERS = ("Ahmet", "Berat", "Ceren", "Deniz", "Elif", "Ferit", "Gizem", "Hakan", "Irmak", "Jale")
SILENT = frozenset({"Ferit", "Jale"})
TOWN, TOWN_MAP = (40.9900, 29.0290), "town.geojson"
NEEDS = ("groceries", "pharmacy", "a walk", "a lift", "a broken lamp")
LEAK, MOVE = "Water leak (simulated)", "A company changed (simulated)"
ON_CALL = "On call (simulated)"
COMPANY_CHANGED = "demo.company_changed"
LIST_SECONDS = 60.0
FIRST_CHANGE_SECONDS = 10.0  # so that whoever has just come sees one
SCRIPT = '''"""Counts primes, so that there is something to run."""


def main(params, context):
    most = params["most"]
    return sum(all(number % divisor for divisor in range(2, int(number**0.5) + 1)) for number in range(2, most))
'''


def with_story(settings: Settings) -> Settings:
    """A company list, scripts, a map and a loopback that webhooks may reach; the files lie below the changes folder."""
    folder = Path(settings.changes.folder).absolute() / "demo"
    source = ListSource(
        name=FEED,
        format="csv",
        url=(folder / "companies.csv").as_uri(),
        key="vkn",
        fields={"title": "title", "city": "city"},
    )
    rule = Rule(feed=FEED, change="modified", kind=COMPANY_CHANGED)
    changes = settings.changes.model_copy(
        update={"registry": (*settings.changes.registry, source), "rule": (*settings.changes.rule, rule)}
    )
    webhook = settings.channels.webhook.model_copy(update={"allow": [*settings.channels.webhook.allow, "127.0.0.0/8"]})
    outline = settings.console.outline or str(folder / TOWN_MAP)
    return settings.model_copy(
        update={
            "console": settings.console.model_copy(update={"outline": outline}),
            "changes": changes,
            "compute": settings.compute.model_copy(update={"script_root": str(folder)}),
            "channels": settings.channels.model_copy(update={"webhook": webhook}),
        }
    )


class Story:
    """Every scene repeats at its own pace, by a seed of its own; one that fails is logged and tried at its next time.

    Started again on the same store, the story goes on: what it made before is found by its name.
    """

    def __init__(self, ulak: Ulak) -> None:
        self._ulak = ulak
        self._folder = Path(ulak.settings.changes.folder).absolute() / "demo"
        self._provider = DarkProvider()
        self._chances: dict[str, random.Random] = {}
        self._leak = self._move = 0
        self._published = 0

    def declare(self) -> None:
        """Before the Ulak is opened: a change of the list starts a plan, and the console reads the map."""
        self._write_map()
        self._ulak.handles(COMPANY_CHANGED)(self._start_plan)

    async def run(self) -> None:
        try:
            await self._tell()
        except Exception:
            log.exception("story_ended")

    async def _tell(self) -> None:
        scenes: tuple[tuple[float, Callable[[], Awaitable[None]]], ...] = (
            (2, self._send_message),
            (3, self._ask_for_help),
            (1, self._answer_offers),
            (5, self._trip_sensor),
            (6, self._run_script),
            (2, self._call_provider),
        )
        try:
            await self._prepare()
            await asyncio.gather(
                self._publish_lists(), self._darken(), *(self._repeat(seconds, scene) for seconds, scene in scenes)
            )
        finally:
            self._provider.close()

    async def _repeat(self, seconds: float, scene: Callable[[], Awaitable[None]]) -> None:
        while True:
            await self._try(scene)
            await self._pause(seconds)

    async def _try(self, scene: Callable[[], Awaitable[None]]) -> None:
        try:
            await scene()
        except Error as error:
            log.info("scene_failed", scene=scene.__name__, error=str(error))

    async def _pause(self, seconds: float) -> None:
        await self._ulak.clock.wait(asyncio.Event(), seconds)

    def _chance(self, scene: str) -> random.Random:
        """Scenes run side by side: with one seed for all, what one draws would depend on when the others do."""
        return self._chances.setdefault(scene, random.Random(f"{scene} 7"))

    # The town

    async def _prepare(self) -> None:
        await asyncio.to_thread(self._write_script)
        await self._provider.open(self._ulak.settings.http.port + 1 if self._ulak.settings.http.port else 0)
        endpoints = self._ulak.notify.endpoints
        if await endpoints.find(self._provider.url) is None:
            await endpoints.register(self._provider.url)
        for name in HELPERS:
            latitude, longitude = self._somewhere("helpers")
            await self._ulak.dispatch.put_helper(
                name.lower(), name=f"{name} (simulated)", latitude=latitude, longitude=longitude
            )
        on_call = await self._make_on_call()
        self._leak = await self._make_plan(LEAK, "Water in {{ variables.room }}", on_call)
        self._move = await self._make_plan(MOVE, "Company {{ variables.company }} changed its title", on_call)

    def _write_script(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / "primes.py").write_text(SCRIPT, encoding="utf-8")

    def _write_map(self) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            (self._folder / TOWN_MAP).write_text(json.dumps(town_map(*TOWN), ensure_ascii=False), encoding="utf-8")
        except OSError as error:
            raise Misconfigured(f"changes.folder: {self._folder} can't be written ({error.strerror})") from None

    async def _make_on_call(self) -> int:
        directory = self._ulak.actions.directory
        known = [one.id for one in await directory.profiles() if one.name == ON_CALL]
        profile = known[0] if known else (await self._new_profile()).id
        present = {one.channel_type for one in await directory.channels(profile_id=profile)}
        for channel_type, target in (("push", "demo-device-token-0001"), ("email", "oncall@example.com")):
            if channel_type not in present:
                channel = await directory.create_channel(
                    {"profile_id": profile, "channel_type": channel_type, "target": target}
                )
                await directory.trust(channel.id)
        return profile

    async def _new_profile(self) -> RecipientProfile:
        return await self._ulak.actions.directory.create_profile({"name": ON_CALL, "status": True, "priority": 1})

    async def _make_plan(self, name: str, says: str, on_call: int) -> int:
        actions = self._ulak.actions
        known = [head.id for head, plan in await actions.plans.list() if plan.name == name]
        steps = [
            {"step_order": 1, "channel_type": "push", "body": says},
            {"step_order": 2, "channel_type": "email", "subject": name, "body": f"{says}."},
            {"step_order": 3, "channel_type": "audit", "body": says},
        ]
        if known:
            identifier = known[0]
        else:
            head, _ = await actions.plans.create({"name": name, "critical": True, "steps": steps})
            identifier = head.id
        routed = {route.step_order for route in await actions.directory.routes(action_plan_id=identifier)}
        for order in {1, 2} - routed:
            await actions.directory.create_route(
                {"action_plan_id": identifier, "step_order": order, "recipient_profile_id": on_call}
            )
        return identifier

    def _somewhere(self, scene: str) -> tuple[float, float]:
        chance = self._chance(scene)
        return TOWN[0] + chance.uniform(-0.006, 0.006), TOWN[1] + chance.uniform(-0.008, 0.008)

    # Scenes

    async def _publish_lists(self) -> None:
        """A company list is published again and again, with a few changes; the first soon after the start."""
        for seconds in chain((FIRST_CHANGE_SECONDS,), repeat(LIST_SECONDS)):
            await self._try(self._publish_list)
            await self._pause(seconds)

    async def _publish_list(self) -> None:
        self._published += 1
        rows = [
            f"{1_000_000_000 + number},{self._title(number)},Istanbul"
            for number in range(COMPANIES + self._published % 5)
        ]
        text = "\n".join(["vkn,title,city", *rows]) + "\n"
        await asyncio.to_thread((self._folder / "companies.csv").write_text, text, encoding="utf-8")
        await self._ulak.changes.start(FEED)

    def _title(self, number: int) -> str:
        return f"Company {number}{' A.Ş.' if number % 50 == self._published % 50 else ''} (simulated)"

    async def _start_plan(self, job: Job) -> None:
        """A company of the list has changed: whoever is on call is told, once per change."""
        company = job.payload.get("identifier") if isinstance(job.payload, dict) else None
        await self._ulak.actions.request(self._move, f"demo-company-{job.id}", variables={"company": company or "?"})

    async def _send_message(self) -> None:
        people = (("IN_APP", "ayse"), ("EMAIL", "ayse@example.com"), ("SMS", "+905551112233"))
        kind, recipient = self._chance("messages").choice(people)
        await self._ulak.notify.send(kind, recipient, "Merhaba Ayşe (simulated)", subject="Ulak")

    async def _ask_for_help(self) -> None:
        latitude, longitude = self._somewhere("tasks")
        await self._ulak.dispatch.open(
            requesterId="ayse",
            category=self._chance("tasks").choice(NEEDS),
            latitude=latitude,
            longitude=longitude,
            deadlineSeconds=20,
        )

    async def _answer_offers(self) -> None:
        """Neighbours accept, refuse or keep silent; a helper who was assigned is done after a while."""
        chance = self._chance("answers")
        for name in HELPERS:
            helper = name.lower()
            for offer in () if name in SILENT else await self._ulak.dispatch.offers(helper):
                answer = chance.random()
                if answer < 0.3:
                    await self._ulak.dispatch.accept(offer.task, helper)
                elif answer < 0.5:
                    await self._ulak.dispatch.reject(offer.task, helper)
        for view in await self._ulak.dispatch.tasks(status="ASSIGNED"):
            if view.helper is not None and chance.random() < 0.15:
                await self._ulak.dispatch.complete(view.task.id, view.helper)

    async def _trip_sensor(self) -> None:
        room = self._chance("sensor").choice(["kitchen", "cellar", "roof"])
        await self._ulak.actions.request(
            self._leak, f"demo-{self._ulak.clock.now()}", device_id="400000011D081B70", variables={"room": room}
        )

    async def _run_script(self) -> None:
        most = self._chance("scripts").randint(2_000, 40_000)
        await self._ulak.compute.submit(Task.create("primes.py", {"most": most}, TaskType.CPU_BOUND))

    async def _call_provider(self) -> None:
        await self._ulak.notify.send("WEBHOOK", self._provider.url, "A message for a provider (simulated)")

    async def _darken(self) -> None:
        """The provider goes dark and comes back: its messages wait meanwhile, and those of others do not."""
        while True:
            await self._pause(LIT_SECONDS if self._published > 2 else FIRST_CHANGE_SECONDS)
            self._provider.is_dark = True
            await self._pause(DARK_SECONDS)
            self._provider.is_dark = False
