"""Circuit breakers over HTTP: which destinations are closed off, and the way to let them try again."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import Field, StrictBool

from ulak.access.caller import Caller
from ulak.app import Ulak
from ulak.clock import to_datetime
from ulak.errors import Invalid, NotFound
from ulak.http.caller import Needs
from ulak.http.hot_routes import Routes
from ulak.http.routes.view import View
from ulak.masking import mask_text
from ulak.spine.breaker import Breaker, hasten_all, load_breakers
from ulak.spine.units.reset import reset_breakers

PAGE = 20  # of destinations that one transaction closes
May = Annotated[Caller, Depends(Needs("admin"))]


class BreakerView(View):
    """A breaker that is not closed. `id` names it, since a destination may have to be masked."""

    id: str
    destination: str
    state: str
    failures: int
    until_at: datetime


class BreakerList(View):
    breakers: list[BreakerView]


class ResetRequest(View):
    """One, by its `id` or its full `destination`, or `all`."""

    id: Annotated[str | None, Field(max_length=16)] = None
    destination: Annotated[str | None, Field(max_length=200)] = None
    all: StrictBool = False


class ResetView(View):
    reset: int


def routes(ulak: Ulak) -> Routes:
    return Routes(routers=(_router(ulak),))


def _router(ulak: Ulak) -> APIRouter:
    router = APIRouter(prefix="/api/breakers", tags=["breakers"])

    @router.get("", summary="List open breakers")
    async def list_breakers(_: May) -> BreakerList:
        return BreakerList(breakers=[_view(breaker) for breaker in await ulak.store.read(load_breakers)])

    @router.post("/reset", summary="Close a breaker, so that its destination is tried at once")
    async def reset(caller: May, asked: ResetRequest) -> ResetView:
        """Jobs that wait there for another attempt are due at once; scheduled ones keep their time.

        Other processes on the same store follow within a few seconds.
        """
        chosen = _choose(await ulak.store.read(load_breakers), asked)
        await _close(ulak, caller.name, chosen)
        return ResetView(reset=len(chosen))

    return router


def _id(destination: str) -> str:
    return hashlib.sha256(destination.encode()).hexdigest()[:16]


def _view(breaker: Breaker) -> BreakerView:
    return BreakerView(
        id=_id(breaker.destination),
        destination=mask_text(breaker.destination),
        state=breaker.state,
        failures=breaker.failures,
        until_at=to_datetime(breaker.until_millis),
    )


def _choose(known: list[Breaker], asked: ResetRequest) -> list[str]:
    names = [breaker.destination for breaker in known]
    if asked.all:
        return names
    if asked.id is None and asked.destination is None:
        raise Invalid('give an id, a destination, or "all": true', fields=[("id", "is missing")])
    chosen = [name for name in names if name == asked.destination or _id(name) == asked.id]
    if not chosen:
        raise NotFound(f"no open breaker {asked.id or 'of that destination'}; it may have closed by itself")
    return chosen


async def _close(ulak: Ulak, who: str, destinations: list[str]) -> None:
    """In this process's memory and in the store, where the others find it gone within a few seconds."""
    breakers = ulak.loops.breakers
    for destination in destinations:
        breakers.reset(destination)
    breakers.changed = [one for one in breakers.changed if one.destination not in destinations]
    for first in range(0, len(destinations), PAGE):
        await ulak.store.write(reset_breakers, who, destinations[first : first + PAGE])
    for destination in destinations:
        await hasten_all(ulak.store, destination)
