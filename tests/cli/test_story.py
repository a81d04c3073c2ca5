"""The story: within its first minute all five rooms work, and one that is killed goes on."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ulak import Ulak
from ulak.cli.process import find_ulak
from ulak.cli.story import COMPANY_CHANGED, LEAK, MOVE, ON_CALL, TOWN, Story
from ulak.console.outline import read_outline
from ulak.settings import load

LIMIT_SECONDS = 60


def opened(folder):
    settings = find_ulak(None, None, [f"store=sqlite:///{folder}/ulak.db", "http.port=0"], demo=True).settings
    return Ulak(settings=settings)


async def until(is_so, what):
    try:
        async with asyncio.timeout(LIMIT_SECONDS):
            while not await is_so():
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise AssertionError(f"not within {LIMIT_SECONDS} s: {what}") from None


async def told(folder, wanted):
    """Run the story until these kinds have each ended a job."""
    ulak = opened(folder)
    story = Story(ulak)
    story.declare()
    async with ulak:
        task = asyncio.create_task(story.run())

        async def have_ended():
            sample = await ulak.sampler.take()
            done = {kind for (word, kind), number in sample.tally.items() if word == "done" and number}
            return not task.done() and wanted <= done

        await until(have_ended, wanted)
        plans = [plan.name for _, plan in await ulak.actions.plans.list()]
        profiles = [profile.name for profile in await ulak.actions.directory.profiles()]
        runs, _ = await ulak.actions.runs()
        endpoints = [one.url for one in await ulak.notify.endpoints.all()]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return plans, profiles, {run["action_plan_id"] for run in runs}, endpoints


async def test_all_rooms_work_and_a_change_of_the_list_starts_a_plan_and_a_second_start_goes_on(folder, monkeypatch):
    monkeypatch.setattr("ulak.cli.story.FIRST_CHANGE_SECONDS", 0.5)
    wanted = {"notify.email", "notify.webhook", "actions.push", "changes.sync", "compute.run.cpu", COMPANY_CHANGED}
    plans, profiles, runs, endpoints = await told(folder, wanted)
    assert sorted(plans) == sorted([LEAK, MOVE])
    assert len(runs) == 2
    assert len(endpoints) == 1  # with its answers on the page of notify
    again, profiles_again, _, _ = await told(folder, {"notify.email"})
    assert sorted(again) == sorted(plans)
    assert profiles == profiles_again == [ON_CALL]


def test_every_scene_draws_by_its_own_seed(folder):
    first, second = Story(opened(folder)), Story(opened(folder))
    first._chance("tasks").random()
    assert [first._chance("sensor").random() for _ in range(5)] == [second._chance("sensor").random() for _ in range(5)]


def test_only_warnings_are_logged_below_the_greeting_unless_more_is_asked_for(folder):
    assert find_ulak(None, None, None, demo=True).settings.log.level == "warning"
    assert find_ulak(None, None, ["log.level=info"], demo=True).settings.log.level == "info"
    assert load().settings.log.level == "info"


def test_the_town_has_a_map_of_its_own_unless_another_is_named(folder):
    story = Story(opened(folder))
    story.declare()
    outline = read_outline(Path(opened(folder).settings.console.outline))
    assert outline.name == "Masalköy (simulated)"
    assert {line.look for line in outline.lines} == {"water", "park", "road", "main"}
    inside = [
        abs(lat - TOWN[0]) < 0.006 and abs(lon - TOWN[1]) < 0.008 for line in outline.lines for lat, lon in line.points
    ]
    assert sum(inside) > 100  # where its people live
    named = find_ulak(None, None, ["console.outline=coast.geojson"], demo=True).settings.console.outline
    assert named == "coast.geojson"
