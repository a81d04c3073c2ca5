"""The bound of unfinished tasks: it refuses new ones, and neither answers nor repeats."""

from __future__ import annotations

import asyncio

import pytest

from tests.dispatch.conftest import asked, request, settle_in
from ulak.dispatch.depth import RECOUNT_SECONDS
from ulak.errors import Conflict, Refused
from ulak.testing import advance


async def test_the_same_idempotency_key_opens_one_task(ulak):
    await settle_in(ulak, 3)
    views = await asyncio.gather(*(ulak.dispatch.open(request(), idempotency_key="k") for _ in range(5)))
    assert len({view.task.id for view in views}) == 1
    again = await ulak.dispatch.open(request(), idempotency_key="k")
    assert asked(again) == ["h0"]
    with pytest.raises(Conflict, match="another body"):
        await ulak.dispatch.open(request(category="other"), idempotency_key="k")


async def test_at_its_capacity_new_tasks_are_refused_and_answers_are_not(make):
    async with make(capacity=2) as ulak:
        await settle_in(ulak, 3)
        first = await ulak.dispatch.open(request())
        await ulak.dispatch.open(request())
        with pytest.raises(Refused):
            await ulak.dispatch.open(request())
        await ulak.dispatch.accept(first.task.id, "h0")
        await ulak.dispatch.complete(first.task.id, "h0")
        await ulak.dispatch.open(request())


async def test_a_repeat_is_the_first_task_at_the_capacity_too(make):
    async with make(capacity=1) as ulak:
        await settle_in(ulak, 2)
        first = await ulak.dispatch.open(request(), idempotency_key="k")
        with pytest.raises(Refused):
            await ulak.dispatch.open(request(), idempotency_key="new")
        again = await ulak.dispatch.open(request(), idempotency_key="k")
        assert (again.task.id, again.pending) == (first.task.id, first.pending)
        with pytest.raises(Conflict, match="another body"):
            await ulak.dispatch.open(request(category="other"), idempotency_key="k")


async def test_unfinished_tasks_are_recounted(ulak):
    await settle_in(ulak, 1)
    await ulak.dispatch.open(request())
    ulak.dispatch.depth.live = 0  # a caller who goes away while its commit is under way does not count it
    await advance(ulak, RECOUNT_SECONDS)
    async with asyncio.timeout(30):
        while ulak.dispatch.depth.live != 1:
            await asyncio.sleep(0.01)
