"""Offers that their helpers could not be told of: they wait for their deadlines, or move on at once."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.dispatch.conftest import asked, request, settle_in
from ulak import Permanent, Ulak
from ulak.channels.channel import Receipt
from ulak.dispatch import records
from ulak.dispatch.model import Contact
from ulak.dispatch.world import WorldChanges
from ulak.settings import Settings
from ulak.testing import drain


@dataclass
class DeadLine:
    """A channel that can reach nobody."""

    name: str = "dead-line"

    def can_handle(self, notification_type: str) -> bool:
        return notification_type == "SMS"

    async def handle(self, message: object) -> Receipt:
        raise Permanent("no such number")

    async def close(self) -> None: ...


@pytest.mark.parametrize(("on_undelivered", "next_asked"), [("advance", ["h1"]), ("wait", ["h0"])])
async def test_an_offer_that_nobody_could_be_told_of_moves_on_if_that_is_set(
    address, clock, on_undelivered, next_asked
):
    given = Settings(store=address, dispatch={"on_undelivered": on_undelivered})
    async with Ulak(address, settings=given, clock=clock, channels=[DeadLine()]) as ulak:
        await settle_in(ulak, 2)
        await ulak.dispatch.put_helper("h0", contact={"notificationType": "SMS", "recipient": "+905550000000"})
        task = (await ulak.dispatch.open(request())).task.id
        await drain(ulak)
        assert asked(await ulak.dispatch.task(task)) == next_asked
        assert (await ulak.dispatch.helper("h0")).timeouts == 0


@pytest.mark.parametrize(("on_undelivered", "next_asked"), [("advance", ["h1"]), ("wait", ["h0"])])
async def test_an_offer_to_a_contact_that_is_not_valid_any_more_moves_on_if_that_is_set(
    make, on_undelivered, next_asked
):
    async with make(on_undelivered=on_undelivered) as ulak:
        await settle_in(ulak, 2)
        helper = await ulak.dispatch.helper("h0")
        helper.contact = Contact("PIGEON", "loft 3")  # of a channel that was taken out
        await ulak.store.write(records.save, WorldChanges(helpers={helper.id: helper}))
        task = (await ulak.dispatch.open(request())).task.id
        await drain(ulak)
        assert asked(await ulak.dispatch.task(task)) == next_asked
        assert (await ulak.dispatch.helper("h0")).timeouts == 0
