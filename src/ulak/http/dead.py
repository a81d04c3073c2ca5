"""Dead letters over HTTP: browse, mend, send again (some, by filter, at a rate, dry run first), drop."""

from __future__ import annotations

import asyncio
from itertools import accumulate
from typing import Annotated, Any

import structlog
from fastapi import APIRouter, Body, Depends, Query
from pydantic import AwareDatetime, Field

from ulak.app import Ulak
from ulak.errors import Conflict, Error, Invalid
from ulak.http.caller import Caller, Needs
from ulak.http.hot import Routes
from ulak.http.jobs import Kind, Limit
from ulak.http.view import Cursor, DeadView, Id, Reveal, View, cursor, dead_view, number, revealing
from ulak.spine import dead_letters
from ulak.spine.dead_letters import Filter
from ulak.spine.job import Record
from ulak.spine.jobs import read_record
from ulak.spine.outcome import ErrorClass
from ulak.spine.query import Queries
from ulak.spine.store import Tx

log = structlog.get_logger("ulak.http")
sql = Queries(__package__)

PAGE_BYTES = 8 * 1024 * 1024  # of payloads; decoded, masked and written they need many times that
MOST_IDS = 1000
LEAST_RATE = 0.01  # a second; a redrive that never ends would keep all others out
May = Annotated[Caller, Depends(Needs("jobs"))]
Text = Annotated[str | None, Query(max_length=200)]
Instant = Annotated[AwareDatetime | None, Query()]


class DeadPage(View):
    """Oldest first, as a redrive takes them. `after` is the cursor of the next page; null at the end."""

    dead: list[DeadView]
    after: str | None


class RedriveRequest(View):
    """Which to send again: `ids`, or all that fit the filter, or `all`."""

    ids: list[Annotated[str, Field(pattern=r"^[0-9]{1,19}$")]] = Field(default=[], max_length=MOST_IDS)
    all: bool = False
    kind: Annotated[str | None, Field(max_length=200)] = None
    error_class: ErrorClass | None = None
    contains: Annotated[str | None, Field(max_length=200)] = None
    died_before: AwareDatetime | None = None
    died_after: AwareDatetime | None = None
    dry_run: bool = False
    rate_per_second: Annotated[float | None, Field(ge=LEAST_RATE, le=10_000)] = None


class RedriveView(View):
    """`matched` fit; `redriven` went back to work. With a rate the rest follows in the background (`continues`)."""

    matched: int
    redriven: int
    ids: list[str]
    continues: bool = False


class SlowRedrive:
    """The redrive at a rate that goes on after its answer: one at a time, so that the rate is what was asked for."""

    def __init__(self, ulak: Ulak) -> None:
        self._ulak = ulak
        self._task: asyncio.Task[None] | None = None

    def start(self, wanted: Filter, rate: float) -> None:
        if self._task is not None and not self._task.done():
            raise Conflict("a redrive at a rate is under way already; try again when it has ended, or without a rate")
        self._task = asyncio.create_task(self._run(wanted, rate), name="ulak-redrive")

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self, wanted: Filter, rate: float) -> None:
        went = 0
        try:
            async for _ in self._ulak.jobs.redrive_all(wanted, rate_per_second=rate):
                went += 1
        except Error as error:
            log.warning("redrive_stopped", redriven=went, error=str(error))
        except asyncio.CancelledError:
            log.warning("redrive_stopped", redriven=went, error="this Ulak is stopping")
            raise
        else:
            log.info("redrive_ended", redriven=went)


def routes(ulak: Ulak) -> Routes:
    slow = SlowRedrive(ulak)
    return Routes(routers=(_router(ulak, slow),), close=slow.cancel)


def _router(ulak: Ulak, slow: SlowRedrive) -> APIRouter:
    router = APIRouter(prefix="/api/dead", tags=["dead letters"])

    @router.get("", summary="List dead letters")
    async def list_dead(
        caller: May,
        kind: Kind = None,
        error_class: Annotated[ErrorClass | None, Query(alias="errorClass")] = None,
        contains: Text = None,
        died_before: Annotated[Instant, Query(alias="diedBefore")] = None,
        died_after: Annotated[Instant, Query(alias="diedAfter")] = None,
        after: Cursor = None,
        limit: Limit = 100,
        reveal: Reveal = False,
    ) -> DeadPage:
        """Oldest first, with cause and payload, both masked unless they may be revealed and that is asked for.

        A page whose payloads are large is shorter than `limit`; `after` says whether more follow.
        """
        shown = revealing(caller, reveal=reveal)
        wanted = Filter(kind, error_class, contains, died_before, died_after)
        found, more = await ulak.store.read(_read_page, wanted, cursor(after) or 0, limit)
        dead = [dead_view(record, its_class, reveal=shown) for record, its_class in found]
        return DeadPage(dead=dead, after=dead[-1].id if dead and more else None)

    @router.post("/redrive", summary="Send dead letters again")
    async def redrive(_: May, asked: RedriveRequest) -> RedriveView:
        """They keep their ids and get fresh attempts. A dry run only says which would go.

        With a rate the answer comes first. One such redrive goes at a time; another meanwhile is a conflict.
        """
        wanted = _wanted(asked)
        if asked.ids:
            return await _redrive_ids(ulak, [number(one, "dead letter") for one in asked.ids], dry_run=asked.dry_run)
        matched, first = await _count(ulak, wanted)
        if asked.dry_run:
            return RedriveView(matched=matched, redriven=0, ids=list(map(str, first)))
        if asked.rate_per_second is None:
            return _answer(matched, [one async for one in ulak.jobs.redrive_all(wanted)])
        slow.start(wanted, asked.rate_per_second)
        return RedriveView(matched=matched, redriven=0, ids=list(map(str, first)), continues=True)

    @router.put("/{id}/payload", summary="Replace a dead letter's payload", status_code=204)
    async def edit(caller: May, id: Id, payload: Annotated[Any, Body(examples=[{"name": "world"}])]) -> None:  # noqa: A002
        """Any JSON, and it is used when the letter is sent again. A room's letter needs the room's scope as well."""
        identifier = number(id, "dead letter")
        found = await ulak.store.read(read_record, identifier)
        caller.need_for_kind("" if found is None else found.kind)
        await ulak.jobs.edit(identifier, payload)

    @router.delete("/{id}", summary="Drop a dead letter", status_code=204)
    async def drop(_: May, id: Id) -> None:  # noqa: A002
        await ulak.jobs.drop(number(id, "dead letter"))

    return router


def _wanted(asked: RedriveRequest) -> Filter:
    wanted = Filter(asked.kind, asked.error_class, asked.contains, asked.died_before, asked.died_after)
    if asked.ids and (wanted != Filter() or asked.all or asked.rate_per_second is not None):
        raise Invalid(
            'ids say which to send, and they go at once: give them without a filter, "all" or a rate',
            fields=[("ids", "can't be given beside a filter, all or ratePerSecond")],
        )
    if wanted == Filter() and not (asked.ids or asked.all):
        raise Invalid('give ids, a filter, or "all": true', fields=[("ids", "is missing")])
    return wanted


def _read_page(tx: Tx, wanted: Filter, after: int, limit: int) -> tuple[list[tuple[Record, str]], bool]:
    """A page, and whether there may be more after it."""
    ids = dead_letters.find_ids(tx, wanted, after, limit)
    letters = tx.all(sql.list_letters, ids=ids) if ids else []
    fitting = _fitting([size for _, _, size in letters])
    page = [(read_record(tx, identifier), error_class) for identifier, error_class, _ in letters[:fitting]]
    return [(record, error_class) for record, error_class in page if record], len(ids) == limit or fitting < len(ids)


def _fitting(sizes: list[int]) -> int:
    """How many of the first make a page that is not too large; one at least, or a large one would end the listing."""
    return max(sum(total <= PAGE_BYTES for total in accumulate(sizes)), min(len(sizes), 1))


async def _count(ulak: Ulak, wanted: Filter) -> tuple[int, list[int]]:
    """How many fit, and the first of them."""
    first = await ulak.jobs.find_dead(wanted, 0, MOST_IDS)
    matched, page = len(first), first
    while len(page) == MOST_IDS:
        page = await ulak.jobs.find_dead(wanted, page[-1], MOST_IDS)
        matched += len(page)
    return matched, first


async def _redrive_ids(ulak: Ulak, ids: list[int], *, dry_run: bool) -> RedriveView:
    present = await ulak.store.read(lambda tx: [one for one, *_ in tx.all(sql.list_letters, ids=ids)])
    if dry_run:
        return RedriveView(matched=len(present), redriven=0, ids=list(map(str, present)))
    return _answer(len(present), await ulak.jobs.redrive(ids))


def _answer(matched: int, went: list[int]) -> RedriveView:
    return RedriveView(matched=matched, redriven=len(went), ids=list(map(str, went[:MOST_IDS])))
