"""A bad day: providers that fail, time out, throttle and go dark; and people's data that is nowhere to be found."""

from __future__ import annotations

import asyncio
import json
import random

from ulak import Transient
from ulak.channels.channel import Message, Receipt, Uncertain
from ulak.errors import Throttled
from ulak.testing import advance, drain

PUSH = {"channel_type": "push"}
RUNS = 400


class BadDay:
    """5 % 5xx, 2 % timeouts, 1 % 429; and while it is dark nobody answers."""

    name = "bad-day"

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self.dark = False
        self.sent: list[str] = []

    def can_handle(self, notification_type: str) -> bool:
        return notification_type == "PUSH"

    async def handle(self, message: Message) -> Receipt:
        if self.dark:
            raise Transient("nobody answers", code="FCM_UNREACHABLE")
        luck = self._chance.random()
        if luck < 0.05:
            raise Transient("busy", code="FCM_HTTP_503")
        if luck < 0.07:
            raise Uncertain("no answer", code="FCM_TIMEOUT")
        if luck < 0.08:
            raise Throttled("slow down", retry_after_seconds=3, code="FCM_HTTP_429")
        self.sent.append(message.idempotency_key)
        return Receipt(f"fcm:{len(self.sent)}")

    async def close(self) -> None: ...


async def test_on_a_bad_day_nearly_all_arrive_and_nothing_is_lost(address, clock):
    from tests.actions.conftest import World, build

    provider = BadDay(7)
    async with build(address, clock, provider, actions={"push": {"retries": 3}}) as ulak:
        told = World(ulak)
        plan = await told.ready(PUSH)
        for number in range(RUNS):
            provider.dark = 100 <= number < 110
            await told.ask(plan)
            if number % 20 == 0:
                await ulak.actions.accept({"data": {"action_plan_id": plan, "evaluation_key": "evaluation-1"}})
        await drain(ulak)
        provider.dark = False
        for seconds in (2, 6, 17, 17, 60):
            await advance(ulak, seconds)
        levels, watched = await ulak.actions.service_levels(), await ulak.actions.watchdog()
    assert watched == {"accepted": RUNS, "ended": RUNS, "waiting": 0, "difference": 0}
    assert levels["success_rate"]["value"] >= 0.995
    assert levels["dlq_rate"]["value"] <= 0.003
    assert len(provider.sent) == len(set(provider.sent)) >= RUNS * 0.995


PLANTED = ("ada.lovelace@example.org", "+905551112233", "Lovelace", "sk_live_planted", "hooks.example.org/T1/PLANTED")


async def test_planted_personal_data_is_found_in_no_list_event_letter_or_log(make, world, channel, capsys):
    async with make() as ulak:
        told = world(ulak)
        channels = [
            ("email", PLANTED[0]),
            ("sms", PLANTED[1]),
            ("webhook", f"https://{PLANTED[4]}"),
        ]
        steps = [{"channel_type": kind, "body": "Hello {{ name }}, {{ token }}"} for kind, _ in channels]
        plan = await told.ready(
            *steps,
            {"channel_type": "push", "body": "{{ missing }}"},
            {"channel_type": "audit", "body": "{{ name }}"},
            channels=channels,
        )
        channel.by_recipient[PLANTED[1]] = Transient(f"no route to {PLANTED[1]} of {PLANTED[0]}", code="TWILIO_DOWN")
        run = await told.run(plan, variables={"name": PLANTED[2], "token": PLANTED[3]})
        for seconds in (2, 6, 17):
            await advance(ulak, seconds)
        run = await told.look(run["run_id"])
        shown = [
            run,
            (await ulak.actions.runs())[0],
            await told.topics(),
            [letter.error_message for letter in await ulak.actions.dead_letters()],
            await ulak.actions.causes(),
            await ulak.actions.explain(run["run_id"]),
            [[record.payload, record.detail, str(record.timeline)] for record in await ulak.jobs.list(limit=1000)],
            [[event.name, event.data] for event in await ulak.jobs.events()],
        ]
        logs = capsys.readouterr()
    assert [step["state"] for step in run["steps"]] == ["sent", "failed", "sent", "failed", "sent"]
    everything = json.dumps(shown, default=str) + logs.out + logs.err
    assert [planted for planted in PLANTED if planted in everything] == []


async def test_a_step_whose_process_died_too_often_is_a_letter_and_the_plan_goes_on(make, world, channel):
    async with make() as ulak:
        told = world(ulak)
        plan = await told.ready({**PUSH, "delay_seconds": 60}, {**PUSH, "body": "two"})
        run = await told.ask(plan)
        await ulak.store.write(_poisoned, (await ulak.jobs.list(kind="actions.push"))[0].id)
        await advance(ulak, 61)
        async with asyncio.timeout(30):  # the caretaker finds it, beside the jobs that a drain waits for
            while not (letters := await ulak.actions.dead_letters(reason="poison")):
                await advance(ulak, 6)
        await drain(ulak)
        view = await told.look(run)
    (letter,) = letters
    assert [step["state"] for step in view["steps"]] == ["failed", "sent"]
    assert (letter.error_code, letter.step_order) == ("WORKER_DIED", 1)
    assert channel.bodies == ["two"]


def _poisoned(tx, job: int) -> None:
    """As the rescuer buries a job whose process died with it again and again."""
    from ulak.spine.query import Queries
    from ulak.spine.units.finish import Leased, bury

    row = tx.row(Queries("ulak.spine").read_job, id=job)
    known = {"id": job, "kind": row[1], "prio": 2, "attempt": 3, "crashes": 3, "epoch": 0, "slots": 1, "state": 1}
    bury(tx, Leased(**{name: known.get(name) for name in Leased._fields}), "its process died 3 times", "poison")
