"""A small town for the console's tests: something on every page, made through the public verbs and waited for."""

from __future__ import annotations

import asyncio
import contextlib

from tests.api.serving import serving, with_deaths
from ulak.compute import Task, TaskType

COMPANIES = 300
DARK = "http://127.0.0.1:9/hooks/turna"  # nobody listens there
BLOCKED = "http://10.0.0.1/hooks/nobody"  # the guard lets nobody there
SCRIPT = "def main(params, context):\n    print('counted')\n    return params['n'] * 2\n"


def write_list(folder, title):
    rows = [f"{1_000_000_000 + number},{title} {number},Ankara" for number in range(COMPANIES)]
    (folder / "companies.csv").write_text("\n".join(["vkn,title,city", *rows]) + "\n", encoding="utf-8")


def settings_of(folder):
    source = {
        "name": "companies",
        "format": "csv",
        "url": (folder / "companies.csv").as_uri(),
        "key": "vkn",
        "fields": {"title": "title", "city": "city"},
    }
    return {
        "changes.folder": str(folder / "changes"),
        "changes.registry": [source],
        "compute.script_root": str(folder),
        "channels.webhook.allow": ["127.0.0.0/8"],
    }


def declare(ulak):
    with_deaths(ulak)

    @ulak.handles("report.nightly")
    async def report(job):
        return None

    ulak.cron("nightly", "0 3 * * *", "report.nightly")


@contextlib.asynccontextmanager
async def town(folder, **overrides):
    """A server with work of every kind, most of it done."""
    write_list(folder, "Company")
    (folder / "double.py").write_text(SCRIPT, encoding="utf-8")
    async with serving(declare, **settings_of(folder), **overrides) as served:
        await fill(served, folder)
        yield served


async def fill(served, folder):
    ulak = served.ulak
    await asyncio.gather(
        engine(served), dispatch(served), notify(served), changes(served, folder), actions(served), compute(ulak)
    )
    await ulak.sampler.take()


async def engine(served):
    await served.settled(await served.enqueue("mail", {"to": "ayse@example.com"}, key="ayse"))
    for number in range(3):
        await served.settled(await served.enqueue("doomed", {"to": f"box {number}"}), "dead")
    await served.enqueue("mail", {}, delaySeconds=3600)


async def dispatch(served):
    places = (("ayse", 40.9900, 29.0290), ("berat", 40.9910, 29.0300), ("ceren", 40.9930, 29.0330))
    for name, latitude, longitude in places:
        await served.ulak.dispatch.put_helper(name, name=name.title(), latitude=latitude, longitude=longitude)
    await served.ulak.dispatch.open(
        requesterId="nur", category="pharmacy", latitude=40.9905, longitude=29.0295, deadlineSeconds=600
    )
    await until(served, "/tasks", lambda body: body["items"][0]["status"] == "OFFERED")


async def notify(served):
    await served.ulak.notify.send("IN_APP", "ayse", "Merhaba", subject="Ulak")
    await served.post("/api/webhook-endpoints", {"url": DARK})
    await served.post("/api/webhook-endpoints/test", {"url": DARK})
    await until(served, "/api/webhook-endpoints", lambda body: body[0]["attempts"] > 0)


async def changes(served, folder):
    """One list is published; most of the next would change, so that it is held back."""
    await served.ulak.changes.sync("companies")
    await asyncio.to_thread(write_list, folder, "Firma")
    held = await served.ulak.changes.sync("companies")
    assert held.verdict == "quarantined", held


async def actions(served):
    act = served.ulak.actions
    steps = [
        {"step_order": 1, "channel_type": "push", "body": "Water in {{ variables.room }}"},
        {"step_order": 2, "channel_type": "audit", "body": "told", "delay_seconds": 3600},
    ]
    plan, _ = await act.plans.create({"name": "Water in the cellar", "critical": True, "steps": steps})
    profile = await act.directory.create_profile({"name": "On call", "status": True, "priority": 1})
    channel = await act.directory.create_channel(
        {"profile_id": profile.id, "channel_type": "push", "target": "device-token-0001"}
    )
    await act.directory.trust(channel.id)
    await act.directory.create_route({"action_plan_id": plan.id, "step_order": 1, "recipient_profile_id": profile.id})
    await act.request(plan.id, "sensor-1", device_id="400000011D081B70", variables={"room": "cellar"})


async def compute(ulak):
    task = await ulak.compute.submit(Task.create("double.py", {"n": 4}, TaskType.IO_BOUND))
    await ulak.compute.result(task, 60)


async def until(served, path, fits):
    """Look at a route, at every commit, until its answer fits."""
    async with asyncio.timeout(60):
        with served.ulak.loops.watching() as news:
            while True:
                news.clear()
                answer = await served.get(path)
                if answer.status == 200 and fits(answer.body):
                    return answer.body
                await served.ulak.clock.wait(news, 0.2)
