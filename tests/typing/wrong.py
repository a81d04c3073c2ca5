"""Mistakes that every type checker must find: each line that ends with `# wrong` has one, and no other line has."""

from __future__ import annotations

from dataclasses import dataclass

from ulak import Job, Ulak
from ulak.compute import Engine
from ulak.spine.job import Record

ulak = Ulak("memory:")


@dataclass
class Order:
    number: int


@dataclass
class Parcel:
    weight: float


async def takes_a_number(job: int) -> None: ...


async def takes_parcels(job: Job[Parcel]) -> None: ...


async def ship(job: Job[Order]) -> None:
    print(job.payload.weight)  # wrong


ulak.handles("a")(takes_a_number)  # wrong
ulak.handles("b", payload=Order)(takes_parcels)  # wrong
ulak.handles("c", concurency=3)  # wrong
ulak.handles("d", lane="fibre")  # wrong


def double(number: int) -> int:
    return 2 * number


def compute(engine: Engine) -> None:
    engine.submit(double, "21")  # wrong
    engine.submit(double, 1, 2)  # wrong
    text: str = engine.submit(double, 1).result()  # wrong
    print(text)


def look(record: Record) -> bool:
    return record.status == "finished"  # wrong
