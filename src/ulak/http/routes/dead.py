"""Dead letters over HTTP: browse, mend, send again (some, by filter, at a rate, dry run first), drop."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Depends, Query
from pydantic import Field, StrictBool

from ulak.access.caller import Caller
from ulak.app import Ulak
from ulak.clock import to_datetime
from ulak.errors import Invalid
from ulak.http.caller import Needs
from ulak.http.hot_routes import Routes
from ulak.http.routes.jobs import Kind, Limit
from ulak.http.routes.view import Cursor, DeadView, Id, Instant, Reveal, View, cursor, dead_view, number, revealed
from ulak.spine.outcome import ErrorClass
from ulak.spine.units.dead_letters import Filter, count_causes, page_of_letters, present_of
from ulak.spine.units.records import read_record
from ulak.spine.units.redrives import Progress

MAX_IDS = 1000
MIN_RATE = 0.01  # a second; a redrive that never ends would keep all others out
May = Annotated[Caller, Depends(Needs("jobs"))]
Text = Annotated[str | None, Query(max_length=200)]


class DeadPage(View):
    """Oldest first, as a redrive takes them. `after` is the cursor of the next page; null at the end."""

    dead: list[DeadView]
    after: str | None


class RedriveRequest(View):
    """Which to send again: `ids`, or all that fit the filter, or `all`."""

    ids: list[Annotated[str, Field(pattern=r"^[0-9]{1,19}$")]] = Field(default=[], max_length=MAX_IDS)
    all: StrictBool = False
    kind: Annotated[str | None, Field(max_length=200)] = None
    error_class: ErrorClass | None = None
    contains: Annotated[str | None, Field(max_length=200)] = None
    code: Annotated[str | None, Field(max_length=200)] = None
    died_before: Instant | None = None
    died_after: Instant | None = None
    dry_run: StrictBool = False
    rate_per_second: Annotated[float | None, Field(ge=MIN_RATE, le=10_000, strict=True)] = None


class RedriveView(View):
    """`matched` fit; `redriven` went back to work. With a rate the rest follows in the background (`continues`)."""

    matched: int
    redriven: int
    ids: list[str]
    continues: bool = False


class CauseView(View):
    kind: str
    error_class: str
    code: str | None
    number: int
    last_at: datetime


class CausesView(View):
    """The most frequent ones; the rest has no page, so `next` is null."""

    items: list[CauseView]
    next: str | None = None


class RedriveProgress(View):
    """`redriven` of `matched` went back to work so far. `reason` says why it failed."""

    state: Literal["none", "running", "ended", "stopped", "failed"]
    matched: int
    redriven: int
    rate_per_second: float | None
    started_at: datetime | None
    reason: str | None = None


def routes(ulak: Ulak) -> Routes:
    return Routes(routers=(_looking(ulak), _redrives(ulak), _mending(ulak)))


def _dead_letters() -> APIRouter:
    return APIRouter(prefix="/api/dead", tags=["dead letters"])


def _looking(ulak: Ulak) -> APIRouter:
    router = _dead_letters()

    @router.get("", summary="List dead letters")
    async def list_dead(
        caller: May,
        kind: Kind = None,
        error_class: Annotated[ErrorClass | None, Query(alias="errorClass")] = None,
        contains: Text = None,
        code: Text = None,
        died_before: Annotated[Instant | None, Query(alias="diedBefore")] = None,
        died_after: Annotated[Instant | None, Query(alias="diedAfter")] = None,
        after: Cursor = None,
        limit: Limit = 100,
        reveal: Reveal = False,
    ) -> DeadPage:
        """Oldest first, with cause and payload, both masked unless they may be revealed and that is asked for.

        A page whose payloads are large is shorter than `limit`; `after` says whether more follow.
        """
        shown = await revealed(ulak, caller, "dead letters", reveal=reveal)
        wanted = Filter(kind, error_class, contains, died_before, died_after, code)
        found, more = await ulak.store.read(page_of_letters, wanted, cursor(after) or 0, limit)
        dead = [dead_view(record, reveal=shown) for record in found]
        return DeadPage(dead=dead, after=dead[-1].id if dead and more else None)

    @router.get("/causes", summary="Dead letters by kind and cause, the most frequent first")
    async def list_causes(_: May, limit: Annotated[int, Query(ge=1, le=200)] = 50) -> CausesView:
        found = await ulak.store.read(count_causes, limit)
        return CausesView(items=[CauseView(**one._asdict()) for one in found])

    return router


def _redrives(ulak: Ulak) -> APIRouter:
    router = _dead_letters()

    @router.post("/redrive", summary="Send dead letters again")
    async def redrive(caller: May, asked: RedriveRequest) -> RedriveView:
        """They keep their ids and get fresh attempts. A dry run only says which would go.

        With a rate the answer comes first. One such redrive goes at a time; another meanwhile is a conflict.
        """
        wanted = _wanted(asked)
        if asked.ids:
            ids = [number(one, "dead letter") for one in asked.ids]
            return await _redrive_ids(ulak, caller.name, ids, dry_run=asked.dry_run)
        matched, first = await _count(ulak, wanted)
        if asked.dry_run:
            return RedriveView(matched=matched, redriven=0, ids=list(map(str, first)))
        if asked.rate_per_second is None:
            return _answer(matched, [one async for one in ulak.jobs.redrive_all(wanted, who=caller.name)])
        await ulak.redriver.start(wanted, asked.rate_per_second, matched, who=caller.name)
        return RedriveView(matched=matched, redriven=0, ids=list(map(str, first)), continues=True)

    @router.get("/redrive", summary="How the redrive at a rate goes")
    async def redrive_progress(_: May) -> RedriveProgress:
        """The one that runs, whichever process of the store sends its letters, or the last one.

        `state` is none, running, ended, stopped or failed; failed as well when its process is gone.
        """
        return _progress(await ulak.redriver.progress())

    @router.delete("/redrive", summary="Stop the redrive at a rate")
    async def stop_redrive(caller: May) -> RedriveProgress:
        """Whichever process of the store sends them. Letters that were sent again stay sent."""
        return _progress(await ulak.redriver.stop(who=caller.name))

    return router


def _mending(ulak: Ulak) -> APIRouter:
    router = _dead_letters()

    @router.put("/{id}/payload", summary="Replace a dead letter's payload", status_code=204)
    async def edit(caller: May, id: Id, payload: Annotated[Any, Body(examples=[{"name": "world"}])]) -> None:  # noqa: A002
        """Any JSON, and it is used when the letter is sent again. A room's letter needs the room's scope as well."""
        identifier = number(id, "dead letter")
        found = await ulak.store.read(read_record, identifier)
        caller.need_for_kind("" if found is None else found.kind)
        if found is not None and (form := ulak.handlers.form_of(found.kind)) is not None:
            form.accept(payload)
        await ulak.jobs.edit(identifier, payload, who=caller.name)

    @router.delete("/{id}", summary="Drop a dead letter", status_code=204)
    async def drop(caller: May, id: Id) -> None:  # noqa: A002
        await ulak.jobs.drop(number(id, "dead letter"), who=caller.name)

    return router


def _progress(found: Progress | None) -> RedriveProgress:
    if found is None:
        return RedriveProgress(state="none", matched=0, redriven=0, rate_per_second=None, started_at=None)
    return RedriveProgress(
        state=found.state,
        matched=found.matched,
        redriven=found.redriven,
        rate_per_second=found.rate_per_second,
        started_at=to_datetime(found.started_at),
        reason=found.reason,
    )


def _wanted(asked: RedriveRequest) -> Filter:
    wanted = Filter(asked.kind, asked.error_class, asked.contains, asked.died_before, asked.died_after, asked.code)
    if asked.ids and (wanted != Filter() or asked.all or asked.rate_per_second is not None):
        raise Invalid(
            'ids say which to send, and they go at once: give them without a filter, "all" or a rate',
            fields=[("ids", "can't be given beside a filter, all or ratePerSecond")],
        )
    if wanted == Filter() and not (asked.ids or asked.all):
        raise Invalid('give ids, a filter, or "all": true', fields=[("ids", "is missing")])
    return wanted


async def _count(ulak: Ulak, wanted: Filter) -> tuple[int, list[int]]:
    """How many fit, and the first of them."""
    first = await ulak.jobs.find_dead(wanted, 0, MAX_IDS)
    matched, page = len(first), first
    while len(page) == MAX_IDS:
        page = await ulak.jobs.find_dead(wanted, page[-1], MAX_IDS)
        matched += len(page)
    return matched, first


async def _redrive_ids(ulak: Ulak, who: str, ids: list[int], *, dry_run: bool) -> RedriveView:
    present = await ulak.store.read(present_of, ids)
    if dry_run:
        return RedriveView(matched=len(present), redriven=0, ids=list(map(str, present)))
    return _answer(len(present), await ulak.jobs.redrive(ids, who=who))


def _answer(matched: int, went: list[int]) -> RedriveView:
    return RedriveView(matched=matched, redriven=len(went), ids=list(map(str, went[:MAX_IDS])))
