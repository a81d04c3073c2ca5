"""A process that runs plans until it is killed, or kills itself at a probe: `python -m tests.actions.child …`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from ulak import Ulak
from ulak.settings import Settings
from ulak.spine import probe

STEPS = [{"step_order": place, "channel_type": "webhook", "body": "{{ n }}"} for place in (1, 2)]


def _die_at(point: str, after: int) -> None:
    left = [after]

    def reached() -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    probe.listen(point, reached)


async def main(address: str, hook: str, begin: int, number: int) -> None:
    webhook = {"allow": "127.0.0.0/8", "slots_per_destination": 20}
    async with Ulak(address, settings=Settings(store=address, channels={"webhook": webhook})) as ulak:
        plan = await _plan(ulak, hook)
        for n in range(begin, begin + number):
            accepted = await ulak.actions.accept(
                {"data": {"action_plan_id": plan, "evaluation_key": f"e-{n}", "variables": {"n": n}}}
            )
            print(n, accepted.run_id, flush=True)
        while (await ulak.actions.watchdog())["waiting"]:
            await asyncio.sleep(0.05)


async def _plan(ulak: Ulak, hook: str) -> int:
    known = await ulak.actions.plans.list()
    if known:
        return known[0][1].id
    directory = ulak.actions.directory
    profile = await directory.create_profile({"name": "Ops"})
    channel = await directory.create_channel({"profile_id": profile.id, "channel_type": "webhook", "target": hook})
    await directory.trust(channel.id)
    _, plan = await ulak.actions.plans.create({"name": "Pump", "steps": STEPS})
    for place in (1, 2):
        await directory.create_route(
            {"action_plan_id": plan.id, "step_order": place, "recipient_profile_id": profile.id}
        )
    return plan.id


if __name__ == "__main__":
    place, to, first, count, *dying = sys.argv[1:]
    if dying:
        _die_at(dying[0], int(dying[1]))
    asyncio.run(main(place, to, int(first), int(count)))
