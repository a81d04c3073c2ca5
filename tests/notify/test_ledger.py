"""The books balance: whatever happens to notifications, none is unaccounted for."""

from __future__ import annotations

import asyncio
import contextlib
import random
from datetime import timedelta

import pytest
import structlog

from tests.notify.conftest import build
from ulak import Conflict, Permanent, Transient
from ulak.channels.channel import Receipt, Uncertain
from ulak.clock import to_datetime
from ulak.notify.ledger import balance
from ulak.notify.model import Request
from ulak.spine.units.sample import take_sample
from ulak.testing import advance, drain


async def books(ulak):
    sample = await ulak.store.read(take_sample)
    return balance(sample.tally, sample.live)


async def test_every_end_has_its_own_part(make, channel):
    channel.answers = [Receipt(), Permanent("no"), Uncertain("?"), Transient("busy")]
    async with make(channels={"email": {"max_attempts": 1}}) as ulak:
        for on_uncertain in ("resend", "resend", "hold", "resend"):
            await ulak.notify.send("EMAIL", "ada@example.org", "x", on_uncertain=on_uncertain)
            await drain(ulak)
        later = to_datetime(ulak.clock.now()) + timedelta(hours=1)
        await ulak.notify.send("SMS", "+905551112233", "waits", send_at=later)
        await ulak.notify.cancel(await ulak.notify.send("SMS", "+905551112233", "cancelled", send_at=later))
        found = await books(ulak)
        assert (found.accepted, found.delivered, found.failed, found.dead, found.held) == (6, 1, 1, 1, 1)
        assert (found.cancelled, found.expired, found.waiting, found.difference) == (1, 0, 1, 0)


@pytest.mark.parametrize("seed", range(3))
async def test_the_difference_is_nothing_through_any_history(make, channel, seed):
    chance = random.Random(seed)
    outcomes = [Receipt(), Transient("busy"), Permanent("no"), Uncertain("?"), ValueError("bug")]
    sections = {"channels": {"email": {"max_attempts": 2, "retry_first_seconds": 1}}}
    async with make(**sections) as ulak:
        sent = []
        for _ in range(40):
            channel.answers.append(chance.choice(outcomes))
            step = chance.random()
            if step < 0.6 or not sent:
                expires = to_datetime(ulak.clock.now() + chance.randrange(1, 5000)) if chance.random() < 0.3 else None
                hold = chance.choice(["hold", "resend"])
                sent.append(
                    await ulak.notify.send("EMAIL", "a@example.org", "x", on_uncertain=hold, expires_at=expires)
                )
            elif step < 0.75:
                await advance(ulak, chance.choice([0.5, 3]))
            else:
                await step_in(ulak, chance.choice(sent), chance.choice(["cancel", "resend"]))
            assert (await books(ulak)).difference == 0
        channel.answers.clear()
        await advance(ulak, 100)
        found = await books(ulak)
        assert (found.accepted, found.waiting, found.difference) == (len(sent), 0, 0)
        views = await ulak.notify.list(limit=500)
        assert sum(view.status == "FAILED" for view in views) == found.failed
        assert sum(view.status == "HELD" for view in views) == found.held
        assert sum(view.status == "DEAD" for view in views) == found.dead


async def step_in(ulak, identifier, verb):
    with contextlib.suppress(Conflict):
        await getattr(ulak.notify, verb)(identifier)


async def test_in_memory_mode_says_how_many_are_lost_at_a_stop(channel):
    with structlog.testing.capture_logs() as logs:
        async with build("memory:", None, work=False) as ulak:
            for _ in range(3):
                await ulak.notify.send("SMS", "+905551112233", "lost")
    (told,) = [line for line in logs if line["event"] == "discarded"]
    assert (told["jobs"], told["log_level"]) == (3, "warning")


async def test_a_durable_store_loses_nothing_at_a_stop(tmp_path, channel):
    address = f"sqlite:///{tmp_path}/ulak.db"
    with structlog.testing.capture_logs() as logs:
        async with build(address, None, work=False) as ulak:
            await ulak.notify.send("SMS", "+905551112233", "kept")
        async with build(address, None, own=[channel]) as ulak:
            await drain(ulak)
    assert channel.bodies == ["kept"]
    assert [line for line in logs if line["event"] == "discarded"] == []


async def test_the_pruner_removes_old_keys_and_inbox_items_by_itself(clock):
    async with build("memory:", clock) as ulak:
        await ulak.notify.accept(Request(notification_type="IN_APP", recipient="ada", body="old"), "key")
        await drain(ulak)
        clock.advance(100 * 86_400)
        async with asyncio.timeout(20):
            while ulak.telemetry.counters[("events_pruned", "", "notify_inbox")] < 1:
                clock.advance(61)  # it may still have been at its first round
                await asyncio.sleep(0.001)
        assert await ulak.notify.inbox("ada") == []
        assert ulak.telemetry.counters[("events_pruned", "", "notify_idempotency")] == 1
