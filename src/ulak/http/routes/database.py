"""The store itself over HTTP: how it is, a backup beside it, and letting go what a restore has held."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import Field

from ulak.access.caller import Caller
from ulak.app import Ulak
from ulak.clock import to_datetime
from ulak.errors import Conflict
from ulak.http.caller import Needs
from ulak.http.routes.view import View
from ulak.masking import mask_url
from ulak.spine.units.hold import count_held, let_go, store_id

May = Annotated[Caller, Depends(Needs("admin"))]
_FILE = "sqlite:///"


class BackupRequest(View):
    """A file name, not a path: backups lie in the folder `backups` beside the store."""

    name: Annotated[str | None, Field(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$", examples=["monday.db"])] = None


class BackupView(View):
    name: str
    bytes: int


class StoreView(View):
    """`differences` is empty when every accepted job is accounted for, `held` counts jobs that a restore holds.

    `warnings` says why the database may keep less than it promises.
    """

    store: str
    store_id: str | None
    live: int
    held: int
    differences: dict[str, int]
    warnings: list[str]


class ResumeView(View):
    resumed: int


def router(ulak: Ulak) -> APIRouter:
    routes = APIRouter(prefix="/api/db", tags=["store"])

    @routes.get("", summary="How the store is")
    async def show(_: May) -> StoreView:
        sample = await ulak.sampler.take()
        kinds = sample.kinds()
        return StoreView(
            store=mask_url(ulak.store.name),
            store_id=await ulak.store.read(store_id),
            live=sum(map(sample.depth, kinds)),
            held=await ulak.store.read(count_held),
            differences={kind: sample.difference(kind) for kind in kinds if sample.difference(kind)},
            warnings=await ulak.store.warnings(),
        )

    @routes.post("/backup", summary="Write a consistent copy while work goes on", status_code=201)
    async def backup(_: May, asked: BackupRequest) -> BackupView:
        stamp = to_datetime(ulak.clock.now()).strftime("%Y%m%d-%H%M%S")
        target = _folder(ulak) / (asked.name or f"ulak-{stamp}.db")
        await ulak.store.backup(str(target))
        return BackupView(name=target.name, bytes=target.stat().st_size)

    @routes.post("/resume", summary="Let go what a restore has held")
    async def resume(_: May) -> ResumeView:
        """Held jobs get their true due times back; those that are overdue run now."""
        resumed = 0
        while number := await ulak.store.write(let_go):
            resumed += number
        return ResumeView(resumed=resumed)

    return routes


def _folder(ulak: Ulak) -> Path:
    if not ulak.store.name.startswith(_FILE):
        raise Conflict(
            f"a backup over HTTP is for SQLite files, and this store is {mask_url(ulak.store.name)}; "
            "for PostgreSQL use pg_dump"
        )
    folder = Path(ulak.store.name.removeprefix(_FILE)).parent / "backups"
    folder.mkdir(exist_ok=True)
    return folder
