"""Deadlines that passed while nobody was there: a start ends them, the oldest first."""

from __future__ import annotations

import asyncio
import random

import pytest

from tests.dispatch.conftest import HERE, request
from tests.postgres_server import fresh_database
from ulak import Ulak
from ulak.settings import Settings
from ulak.spine.event import EventRecord, read_events
from ulak.testing import drain

OFFERS = 500


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def address(request, tmp_path):
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/ulak.db"
        return
    with fresh_database() as found:
        yield found


async def test_overdue_offers_end_oldest_first_after_a_start(address, clock):
    settings = Settings(store=address, dispatch={"searches": 1})
    deadlines = random.Random(1).sample(range(1, OFFERS + 1), OFFERS)
    async with Ulak(address, settings=settings, clock=clock) as ulak:
        await asyncio.gather(*(ulak.dispatch.put_helper(f"h{one}", HERE) for one in range(OFFERS)))
        views = await asyncio.gather(*(ulak.dispatch.open(request(deadlineSeconds=one)) for one in deadlines))
        await drain(ulak)
    due_at = {one.offer: one.deadline_at for view in views for one in view.pending}
    clock.advance(OFFERS + 1)
    async with Ulak(address, settings=settings, clock=clock) as ulak:
        await drain(ulak)
        events = await _all_events(ulak)
    ended = [due_at[event.job] for event in events if event.name == "dispatch.offer.expired"]
    assert len(ended) == OFFERS
    assert ended == sorted(ended)


async def _all_events(ulak: Ulak) -> list[EventRecord]:
    found: list[EventRecord] = []
    while page := await ulak.store.read(read_events, found[-1].seq if found else 0, 1000):
        found += page
    return found
