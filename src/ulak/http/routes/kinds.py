"""Kinds over HTTP: which there are, and steering them while they are served."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path
from pydantic import Field, StrictBool

from ulak.access.caller import Caller
from ulak.app import Ulak
from ulak.errors import Invalid, NotFound
from ulak.http.caller import Needs
from ulak.http.hot_routes import Routes
from ulak.http.routes.view import View
from ulak.http.segment import SegmentRoute
from ulak.masking import mask_text
from ulak.spine.job import MAX_KIND
from ulak.spine.kinds import KindState
from ulak.spine.units.controls import MAX_CONCURRENCY, UNCHANGED

May = Annotated[Caller, Depends(Needs("admin"))]
MayLook = Annotated[Caller, Depends(Needs("jobs"))]
KindName = Annotated[str, Path(min_length=1, max_length=MAX_KIND, examples=["demo.greet"])]


class KindView(View):
    """`handled` and `served` are of the process that answers; a control is of all. `concurrency` is of each process."""

    kind: str
    handled: bool
    served: bool
    paused: bool
    concurrency: int | None
    declared: int | None
    jobs: dict[str, int]
    oldest_at: datetime | None


class KindPage(View):
    """By name. There are few, so `next` is null."""

    items: list[KindView]
    next: str | None = None


class KindChange(View):
    """A change of a kind: a field left out stays; a `concurrency` of null is the handler's own again."""

    paused: StrictBool = False
    concurrency: Annotated[int | None, Field(ge=1, le=MAX_CONCURRENCY, strict=True)] = None


def routes(ulak: Ulak) -> Routes:
    return Routes(routers=(_router(ulak),))


def _router(ulak: Ulak) -> APIRouter:
    router = APIRouter(prefix="/api/kinds", tags=["kinds"], route_class=SegmentRoute)

    @router.get("", summary="List job kinds")
    async def list_kinds(_: MayLook) -> KindPage:
        """Those that have a handler here, have unfinished jobs, or are steered."""
        return KindPage(items=[_view(state) for state in await ulak.kinds.list()])

    @router.patch("/{kind}", summary="Pause, resume or bound a kind")
    async def change_kind(caller: May, kind: KindName, asked: KindChange) -> KindView:
        """In all processes within two seconds. A paused kind is accepted and waits; attempts that run end as usual."""
        given: dict[str, Any] = {name: getattr(asked, name) for name in asked.model_fields_set}
        if not given:
            raise Invalid("give paused, concurrency or both", fields=[("paused", "is missing")])
        if kind not in {state.kind for state in await ulak.kinds.list()}:
            raise NotFound(f"no kind {kind}; it has no handler here and no jobs. See: ulak kinds list")
        changed = {"paused": UNCHANGED, "concurrency": UNCHANGED} | given
        return _view(await ulak.kinds.set(kind, **changed, who=caller.name))

    return router


def _view(state: KindState) -> KindView:
    fields = asdict(state)
    counts = fields.pop("jobs") or {}
    oldest_at = counts.pop("oldest_at", None)
    return KindView(**(fields | {"kind": mask_text(state.kind)}), jobs=counts, oldest_at=oldest_at)
