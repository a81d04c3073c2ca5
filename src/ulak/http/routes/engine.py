"""The engine over HTTP: what it does now, its processes, timers that come next, cron entries and "run now"."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query
from fastapi.responses import StreamingResponse

from ulak.access.caller import Caller
from ulak.app import Ulak
from ulak.clock import to_datetime
from ulak.errors import NotFound
from ulak.http.caller import Needs
from ulak.http.hot_routes import Routes
from ulak.http.overview import Overview
from ulak.http.routes.view import View, cursor
from ulak.http.segment import SegmentRoute
from ulak.ids import made_at
from ulak.masking import mask_text
from ulak.spine.store import Tx
from ulak.spine.units import audit
from ulak.spine.units.cron import CronEntry
from ulak.spine.units.engine import list_timers, list_workers
from ulak.spine.units.enqueue import insert_owed
from ulak.spine.units.finish import new_row

MayLook = Annotated[Caller, Depends(Needs("jobs"))]
May = Annotated[Caller, Depends(Needs("admin"))]
# A due time and an id: many timers may be due at the same millisecond.
TimerCursor = Annotated[str, Query(pattern=r"^[0-9]{1,15}-[0-9]{1,19}$", examples=["1795000000000-869712345678901248"])]


class WorkerView(View):
    id: str
    label: str
    node: int
    started_at: datetime
    lease_at: datetime | None
    is_this: bool
    running: int | None


class WorkerPage(View):
    items: list[WorkerView]
    next: str | None = None


class TimerView(View):
    id: str
    kind: str
    key: str | None
    due_at: datetime
    attempt: int


class TimerPage(View):
    """The nearest first. `next` is the cursor of the next page, given back as `after`; null at the end."""

    items: list[TimerView]
    next: str | None


class CronView(View):
    name: str
    expression: str
    time_zone: str
    kind: str
    next_at: datetime


class CronPage(View):
    items: list[CronView]
    next: str | None = None


class CronRun(View):
    name: str
    id: str


def routes(ulak: Ulak) -> Routes:
    overview = Overview(ulak)
    return Routes(routers=(_router(ulak), _overview(overview)), close=overview.close, leave=overview.leave)


def _router(ulak: Ulak) -> APIRouter:
    router = APIRouter(prefix="/api", tags=["engine"], route_class=SegmentRoute)

    @router.get("/workers", summary="Processes that work on this store")
    async def workers(_: MayLook) -> WorkerPage:
        """`running` is known of the process that answers."""
        found = await ulak.store.read(list_workers)
        items = [
            WorkerView(
                id=str(one.id),
                label=one.label,
                node=one.node,
                started_at=to_datetime(one.started_at),
                lease_at=to_datetime(one.lease_at),
                is_this=one.id == ulak.store.owner,
                running=_running(ulak) if one.id == ulak.store.owner else None,
            )
            for one in found
        ]
        return WorkerPage(items=items or [_alone(ulak)])

    @router.get("/timers", summary="Timers that come next")
    async def timers(
        _: MayLook, after: TimerCursor = "0-0", limit: Annotated[int, Query(ge=1, le=500)] = 50
    ) -> TimerPage:
        due_at, identifier = after.split("-")
        found = await ulak.store.read(list_timers, (int(due_at), cursor(identifier) or 0), limit)
        items = [
            TimerView(
                id=str(one.id),
                kind=one.kind,
                key=None if one.key is None else mask_text(one.key),
                due_at=to_datetime(one.due_at),
                attempt=one.attempt,
            )
            for one in found
        ]
        more = len(found) == limit
        return TimerPage(items=items, next=f"{found[-1].due_at}-{found[-1].id}" if more else None)

    @router.get("/cron", summary="Cron entries and their next times")
    async def cron(_: MayLook) -> CronPage:
        now = ulak.store.clock.now()
        return CronPage(items=[_cron_view(one, now) for one in ulak.cron_entries])

    @router.post("/cron/{name}/run", status_code=202, summary="Run a cron entry now, in addition to its times")
    async def run_cron(caller: May, name: Annotated[str, Path(min_length=1, max_length=200)]) -> CronRun:
        entry = next((one for one in ulak.cron_entries if one.name == name), None)
        if entry is None:
            raise NotFound(f"no cron entry {name!r:.50} here; GET /api/cron lists them")
        return CronRun(name=name, id=str(await ulak.write(_run_now, entry, caller.name)))

    return router


def _run_now(tx: Tx, entry: CronEntry, who: str) -> int:
    row = new_row(tx, entry.kind, entry.payload)
    insert_owed(tx, [row])
    audit.record(tx, who, "cron.run", entry.name)
    return row.id


def _running(ulak: Ulak) -> int:
    return len(ulak.loops.worker.running)


def _alone(ulak: Ulak) -> WorkerView:
    """On a file there is one process, and no row for it."""
    return WorkerView(
        id=str(ulak.store.owner),
        label="this process",
        node=0,
        started_at=to_datetime(made_at(ulak.store.owner)),
        lease_at=None,
        is_this=True,
        running=_running(ulak),
    )


def _cron_view(entry: CronEntry, now: int) -> CronView:
    return CronView(
        name=entry.name,
        expression=entry.expression,
        time_zone=entry.time_zone,
        kind=entry.kind,
        next_at=to_datetime(entry.next_after(now)),
    )


def _overview(overview: Overview) -> APIRouter:
    router = APIRouter(prefix="/api/overview", tags=["overview"])

    @router.get("", summary="What the whole store does now, and did in the last 15 minutes")
    async def read(_: MayLook) -> dict[str, Any]:
        """History begins when somebody looks first, and goes on while somebody does."""
        return await overview.now()

    @router.get("/stream", summary="The overview, a frame a second", response_class=StreamingResponse)
    async def stream(_: MayLook) -> StreamingResponse:
        """Server-sent events of the name `overview`. A slow reader gets only the newest frame."""
        return StreamingResponse(
            _events(overview), media_type="text/event-stream", headers={"cache-control": "no-store"}
        )

    return router


async def _events(overview: Overview) -> AsyncIterator[bytes]:
    yield b": following\n\n"
    async for frame in overview.frames():
        yield b"event: overview\ndata: " + frame + b"\n\n"
