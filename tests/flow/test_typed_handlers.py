"""Typed payloads: checked when a job is enqueued, and read again before the handler; a misfit is a dead letter."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel, Field

from ulak import Invalid, Job, NewJob, Ulak
from ulak.spine.units.dead_letters import Filter
from ulak.testing import drain


@dataclass
class OrderData:
    number: int
    lines: list[str] = field(default_factory=list)


class OrderStruct(msgspec.Struct):
    number: int
    lines: list[str] = []


class OrderModel(BaseModel):
    number: int = Field(alias="no")
    lines: list[str] = []


FORMS = [
    (OrderData, OrderData(7, ["tea"]), {"number": 7, "lines": ["tea"]}, {"number": "x", "lines": []}, "payload.number"),
    (OrderStruct, OrderStruct(7, ["tea"]), {"number": 7, "lines": ["tea"]}, {"lines": []}, "payload.number"),
    (OrderModel, OrderModel(no=7, lines=["tea"]), {"no": 7, "lines": ["tea"]}, {"no": 7, "lines": [1]}, "lines[0]"),
]


def made(form, seen, store="memory:"):
    ulak = Ulak(store)

    @ulak.handles("order.ship", payload=form)
    async def ship(job):
        seen.append(job.payload)

    return ulak


@pytest.mark.parametrize(("form", "instance", "plain", "bad", "named"), FORMS)
async def test_a_handler_gets_the_type_from_an_instance_and_from_plain_data(form, instance, plain, bad, named):
    seen: list[Any] = []
    async with made(form, seen) as ulak:
        await ulak.enqueue("order.ship", instance)
        await ulak.enqueue_many([NewJob("order.ship", plain)])
        await ulak.put(NewJob("order.ship", instance))
        await ulak.offer("order.ship", plain)
        await drain(ulak)
    assert seen == [instance] * 4
    assert all(type(one) is form for one in seen)


@pytest.mark.parametrize(("form", "instance", "plain", "bad", "named"), FORMS)
async def test_a_payload_that_does_not_fit_is_refused_and_its_field_is_named(form, instance, plain, bad, named):
    async with made(form, []) as ulak:
        for refused in (
            ulak.enqueue("order.ship", bad),
            ulak.enqueue_many([NewJob("order.ship", plain), NewJob("order.ship", bad)]),
            ulak.put(NewJob("order.ship", bad)),
            ulak.offer("order.ship", bad),
        ):
            with pytest.raises(Invalid, match=r"the payload of order\.ship is not of the form Order") as caught:
                await refused
            assert named in caught.value.fields[0][0]
        assert await ulak.jobs.counts() == {}


async def test_pydantic_names_every_field_and_msgspec_says_what_is_missing():
    async with made(OrderModel, []) as ulak:
        with pytest.raises(Invalid) as caught:
            await ulak.enqueue("order.ship", {"lines": [1, "a", 2]})
        assert [name for name, _ in caught.value.fields] == ["payload.no", "payload.lines[0]", "payload.lines[2]"]
        assert caught.value.fields[0][1] == "is required"
    async with made(OrderStruct, []) as ulak:
        with pytest.raises(Invalid, match=r"payload\.number is required"):
            await ulak.enqueue("order.ship", {})


async def test_a_stored_payload_that_no_longer_fits_is_a_dead_letter_with_a_code(tmp_path):
    store = f"sqlite:///{tmp_path}/ulak.db"
    async with Ulak(store, work=False) as before:  # it knows no handler, as a client or an older release
        identifier = await before.enqueue("order.ship", {"number": "seven"})
    seen: list[Any] = []
    async with made(OrderData, seen, store) as ulak:
        await drain(ulak)
        record = await ulak.jobs.get(identifier)
        assert (record.status, record.code, record.error_class) == ("dead", "PAYLOAD_INVALID", "permanent")
        assert "payload.number must be a whole number, not text" in str(record.detail)
        assert record.attempt == 1
        await ulak.jobs.edit(identifier, {"number": 7})
        [redriven] = [one async for one in ulak.jobs.redrive_all(Filter(code="PAYLOAD_INVALID"))]
        await drain(ulak)
        assert (await ulak.jobs.get(redriven)).status == "done"
    assert seen == [OrderData(7)]


async def test_a_payload_that_json_can_not_hold_is_refused():
    async with made(OrderData, []) as ulak:
        with pytest.raises(Invalid, match="can't be written as JSON"):
            await ulak.enqueue("order.ship", object())


async def test_other_kinds_and_things_that_are_no_jobs_are_told_as_ever():
    async with made(OrderData, []) as ulak:
        await ulak.enqueue("other", {"number": "x"})
        with pytest.raises(Invalid):
            await ulak.enqueue(["order.ship"], {})
        with pytest.raises(Invalid, match="is not a job"):
            await ulak.enqueue_many(["order.ship"])
        with pytest.raises(Invalid, match="is not a list of jobs"):
            await ulak.enqueue_many(7)


def declared(call, **options):
    return Ulak("memory:").handles("order.ship", **options)(call)


async def takes_int(job: int): ...


async def takes_two(job, other): ...


async def takes_none(): ...


async def takes_keyword(*, job): ...


async def takes_other(job: Job[OrderStruct]): ...


@pytest.mark.parametrize(
    ("call", "options", "says"),
    [
        (takes_int, {}, "takes_int says that it takes int; write Job"),
        (takes_two, {}, "can't be called with one argument"),
        (takes_none, {}, "can't be called with one argument"),
        (takes_keyword, {}, "can't be called with one argument"),
        (takes_other, {"payload": OrderData}, r"Job\[OrderData\], but takes_other says Job\[OrderStruct\]"),
        (7, {"lane": "thread"}, "give a function that takes the job"),
    ],
)
def test_a_function_that_can_not_be_a_handler_is_refused_where_it_is_declared(call, options, says):
    with pytest.raises(Invalid, match=says):
        declared(call, **options)


async def takes_job(job: Job): ...


async def takes_order(job: Job[OrderData]): ...


async def takes_object(job: object): ...


async def takes_anything(job, retries=3): ...


async def takes_all(*jobs: int): ...


@pytest.mark.parametrize("call", [takes_job, takes_order, takes_object, takes_anything, takes_all])
def test_a_function_that_takes_a_job_is_accepted(call):
    assert declared(call, payload=OrderData) is call


def test_a_type_that_nothing_can_be_read_as_is_refused():
    with pytest.raises(Invalid, match="is not a type that can be read"):
        declared(takes_anything, payload={1: 2})
