"""What a user writes, and every type checker must accept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_type

import msgspec
from pydantic import BaseModel

from ulak import Job, Ulak
from ulak.compute import Engine, Future
from ulak.spine.job import Record, Status

ulak = Ulak("memory:")


@dataclass
class Order:
    number: int


class Parcel(msgspec.Struct):
    weight: float


class Invoice(BaseModel):
    total: int


@ulak.handles("order.ship", payload=Order)
async def ship(job: Job[Order]) -> None:
    assert_type(job.payload, Order)
    assert_type(job.payload.number, int)


@ulak.handles("parcel.weigh", payload=Parcel, concurrency=4)
async def weigh(job: Job[Parcel]) -> float:
    return job.payload.weight


@ulak.handles("invoice.book", payload=Invoice, lane="thread")
def book(job: Job[Invoice]) -> int:
    return job.payload.total


@ulak.handles("plain", lane="thread", max_attempts=3)
def plain(job: Job) -> None:
    assert_type(job.payload, Any)


def double(number: int) -> int:
    return 2 * number


def compute(engine: Engine) -> None:
    future = engine.submit(double, 21)
    assert_type(future, Future[int])
    assert_type(future.result(), int)
    for value in engine.map(double, [1, 2]):
        assert_type(value, int)


def look(record: Record) -> bool:
    assert_type(record.status, Status)
    return record.status == "done"
