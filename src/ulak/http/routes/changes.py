"""The changes room's door: feeds below /api/v1 as the seed names them, syncs below /api/changes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.responses import FileResponse, StreamingResponse

from ulak.access.caller import Caller
from ulak.app import Ulak
from ulak.changes import answers, istanbul
from ulak.changes.decide import MAX_PAGE
from ulak.changes.feed_reader import MAX_WAIT_SECONDS, FeedReader, LogPage
from ulak.changes.model import Cursor, SyncStatus
from ulak.changes.watches import Watch
from ulak.errors import Error, Gone, Invalid, NotFound
from ulak.http.caller import Needs, caller_of
from ulak.http.failure import Headers, encoded
from ulak.http.hot_routes import Routes
from ulak.http.routes.changes_models import ApproveIn, BatchIn, SyncIn, WatchIn
from ulak.http.segment import SegmentRoute
from ulak.masking import mask_url

Answer = dict[str, Any]

BELOW = "/api/v1"
READERS = [Depends(Needs("changes"))]
WRITERS = [Depends(Needs("admin"))]
# A record whose identifier is one of these is found by /batch alone.
WORDS = frozenset({"changes", "archives", "log", "watches", "buckets", "batch"})
STREAM_PAGE = 500
HEARTBEAT_SECONDS = 15.0
WAIT_SECONDS = 1.0

FeedName = Annotated[str, Path(alias="feed", max_length=100, examples=["einvoice"])]
RegistryName = Annotated[str, Path(alias="registry", max_length=100, examples=["gib"])]
SyncId = Annotated[str, Path(max_length=100)]
Instant = Annotated[str | None, Query(examples=["2026-02-19T10:00:00"])]
PageNumber = Annotated[int, Query(ge=1, le=1_000_000_000)]
PageSize = Annotated[int, Query(alias="pageSize", ge=1, le=MAX_PAGE)]
After = Annotated[str | None, Query(description="A cursor of this feed; without one, from where the log begins.")]


def routes(ulak: Ulak) -> Routes:
    made = (_feeds(ulak), _log(ulak), _archives(ulak), _watches(ulak), _records(ulak), _syncs(ulak))
    marks = ((f"{BELOW}/", partial(_last_sync, ulak)),)
    return Routes(routers=made, marks=marks, scope="publish lists and follow their changes")


def _below() -> APIRouter:
    return APIRouter(prefix=BELOW, tags=["changes"], dependencies=READERS, route_class=SegmentRoute)


async def _last_sync(ulak: Ulak, path: str, *, admitted: bool) -> Headers:
    """When the feed of a path was last published; where the path names none, when any was."""
    feeds, name = ulak.changes.feeds, path.split("/")[3]
    if admitted:
        with contextlib.suppress(Error):  # of a store that does not answer, the last look counts
            await feeds.look()
    stamp = feeds.stamp(name)
    return [] if stamp is None else [(b"x-last-sync-at", istanbul.shown(stamp).encode())]


def _json(answer: Answer) -> Response:
    """A large answer, encoded at once: FastAPI would look at each of its values first."""
    return Response(msgspec.json.encode(answer), media_type="application/json")


def _feeds(ulak: Ulak) -> APIRouter:
    router = _below()

    @router.get("/status", summary="Every feed and how the last sync of each registry ended")
    async def status() -> Answer:
        return await ulak.changes.status()

    @router.get("/{feed}/changes", response_model=Answer, summary="Changes after one instant, up to another")
    async def changes(
        feed: FeedName,
        since: Instant = None,
        until: Instant = None,
        page: PageNumber = 1,
        page_size: PageSize = 100,
        detail: bool = False,
    ) -> Response:
        """`since` is exclusive, `until` inclusive; both Europe/Istanbul. Read on with the answer's `until`.

        410 when the log does not reach back so far: take `/archives/latest` and go on from its `until`.
        """
        if since is None:
            raise Invalid("since is required", fields=[("since", "is required")])
        asked = None if until is None else istanbul.parse("until", until)
        start = istanbul.parse("since", since)
        found = await ulak.changes.feeds.changes(feed, start, asked, page, page_size, detail=detail)
        return Response(found, media_type="application/json")

    @router.get("/{feed}/buckets", summary="The 256 sums behind a feed's state hash")
    async def buckets(feed: FeedName) -> Answer:
        return await ulak.changes.feeds.buckets(feed)

    @router.get("/{feed}/buckets/{number}", response_model=Answer, summary="Every record of one bucket")
    async def bucket(feed: FeedName, number: int) -> Response:
        return _json(await ulak.changes.feeds.bucket(feed, number))

    return router


def _log(ulak: Ulak) -> APIRouter:
    router = _below()

    @router.get("/{feed}/log", response_model=Answer, summary="The log after a cursor; waits for news if asked to")
    async def log(
        feed: FeedName,
        after: After = None,
        limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 100,
        wait: Annotated[float, Query(ge=0, le=MAX_WAIT_SECONDS, description="seconds")] = 0,
        collapse: Annotated[bool, Query(description="Of each record only the last change of this page.")] = False,
        keys: Annotated[str | None, Query(description="Only these identifiers, between commas.")] = None,
    ) -> Response:
        """`stateHash` is that of the feed when the page ends at its head, and null before."""
        cursor = None if after is None else Cursor.parse("after", after)
        wanted = [key for key in (keys or "").split(",") if key]
        page = await ulak.changes.feeds.log(feed, cursor, limit, wait_seconds=wait, keys=wanted)
        return _json(_log_answer(ulak.changes.feeds, page, collapse=collapse))

    @router.get("/{feed}/log/stream", summary="The log as server-sent events", response_class=StreamingResponse)
    async def stream(
        feed: FeedName,
        after: After = None,
        last_event_id: Annotated[str | None, Header(alias="Last-Event-ID")] = None,
    ) -> StreamingResponse:
        """`change` events; the id of each is its cursor. From `Last-Event-ID` or `after`, else from now on."""
        given = last_event_id or after
        if given is None:
            cursor = (await ulak.changes.feeds.feed(feed)).head
        else:
            cursor = Cursor.parse("Last-Event-ID" if last_event_id else "after", given)
        first = await ulak.changes.feeds.log(feed, cursor, STREAM_PAGE)  # what is gone is told before it begins
        headers = {"cache-control": "no-store", "x-ulak-cursor": str(cursor)}
        return StreamingResponse(_events(ulak, feed, first), media_type="text/event-stream", headers=headers)

    return router


def _log_answer(feeds: FeedReader, page: LogPage, *, collapse: bool) -> Answer:
    form, epoch = feeds.form(page.feed.name), page.feed.epoch
    versions = answers.collapsed(page.versions) if collapse else page.versions
    return {
        "changes": [answers.detailed(form, version, epoch) for version in versions],
        "cursor": str(page.cursor),
        "more": page.more,
        "stateHash": page.state_hash,
    }


async def _events(ulak: Ulak, feed: str, page: LogPage) -> AsyncIterator[bytes]:
    feeds, clock = ulak.changes.feeds, ulak.clock
    form, told_at = feeds.form(feed), clock.monotonic()
    yield b": from here\n\n"
    while True:
        for version in page.versions:
            change = answers.detailed(form, version, page.feed.epoch)
            yield f"id: {change['cursor']}\nevent: change\ndata: {msgspec.json.encode(change).decode()}\n\n".encode()
            told_at = clock.monotonic()
        if clock.monotonic() - told_at >= HEARTBEAT_SECONDS:
            yield b": still here\n\n"
            told_at = clock.monotonic()
        try:
            page = await feeds.log(feed, page.cursor, STREAM_PAGE, wait_seconds=WAIT_SECONDS)
        except Gone as gone:
            yield f"event: gone\ndata: {encoded(gone)[1].decode()}\n\n".encode()
            return


def _archives(ulak: Ulak) -> APIRouter:
    router = _below()

    @router.get("/{feed}/archives", summary="Archives of a feed, newest first")
    async def list_archives(feed: FeedName) -> Answer:
        rows = await ulak.changes.feeds.archives(feed)
        epoch = (await ulak.changes.feeds.feed(feed)).epoch if rows else ""
        return {"items": [answers.archive(row, epoch) for row in rows], "next": None}

    @router.get("/{feed}/archives/latest", summary="The newest archive", response_class=FileResponse)
    async def latest(feed: FeedName, request: Request) -> Response:
        """XML.GZ. Its `until` is the next `since`, its `cursor` the next `after`.

        Just after a sync, this waits up to two seconds for the archive of its head.
        """
        await ulak.changes.feeds.await_archive(feed)
        return await _file(ulak, feed, None, request)

    @router.get("/{feed}/archives/{fileName}", summary="One archive", response_class=FileResponse)
    async def archive(
        feed: FeedName, file_name: Annotated[str, Path(alias="fileName", max_length=200)], request: Request
    ) -> Response:
        return await _file(ulak, feed, file_name, request)

    return router


async def _file(ulak: Ulak, feed: str, name: str | None, request: Request) -> Response:
    row = await ulak.changes.feeds.archive(feed, name)
    epoch = (await ulak.changes.feeds.feed(feed)).epoch
    etag = f'"{row.digest}"'
    headers = {"ETag": etag, "X-Ulak-Cursor": str(Cursor(epoch, row.pos)), "Cache-Control": "no-cache"}
    headers["X-Ulak-Fields"] = ",".join(ulak.changes.feeds.form(feed).fields)  # an archive leaves out what is null
    if etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    path = await ulak.changes.storehouse.find(feed, row.name)
    return FileResponse(path, headers=headers, media_type="application/gzip", filename=row.name)


def _watches(ulak: Ulak) -> APIRouter:
    router = _below()

    @router.get("/{feed}/watches", summary="Watches of a feed")
    async def list_watches(feed: FeedName) -> Answer:
        items = [_watch_answer(ulak, watch) for watch in await ulak.changes.list_watches(feed)]
        for one in items:
            one["webhook"] = one["webhook"] and mask_url(one["webhook"])
        return {"items": items, "next": None}

    @router.post("/{feed}/watches", status_code=201, summary="Tell a webhook, or enqueue a job, at each change")
    async def watch(feed: FeedName, body: WatchIn, caller: Annotated[Caller, Depends(caller_of)]) -> Answer:
        """The secret that signs the webhook's requests is shown this once. A kind needs the scope `jobs`, too."""
        if body.kind is not None:
            caller.need("jobs")
            caller.need_for_kind(body.kind)
        made = await ulak.changes.watch(feed, body.keys, body.fields, webhook=body.webhook, kind=body.kind)
        return {**_watch_answer(ulak, made), "secret": made.secret}

    @router.delete("/{feed}/watches/{watchId}", status_code=204, summary="End a watch")
    async def unwatch(feed: FeedName, watch_id: Annotated[str, Path(alias="watchId", max_length=100)]) -> None:
        await ulak.changes.unwatch(feed, watch_id)

    return router


def _watch_answer(ulak: Ulak, watch: Watch) -> Answer:
    return {
        "id": ulak.store.ids.to_text(watch.id),
        "feed": watch.feed,
        "keys": sorted(watch.keys),
        "fields": sorted(watch.fields),
        "webhook": watch.webhook,
        "kind": watch.kind,
    }


def _records(ulak: Ulak) -> APIRouter:
    router = _below()

    @router.get("/{feed}", summary="Search a feed by a part of the title")
    async def search(
        feed: FeedName,
        text: Annotated[str, Query(alias="search", max_length=200)] = "",
        page: PageNumber = 1,
        page_size: PageSize = 100,
    ) -> Answer:
        return await ulak.changes.feeds.search(feed, text, page, page_size)

    @router.post("/{feed}/batch", summary="Several records at once")
    async def batch(feed: FeedName, body: BatchIn) -> Answer:
        return await ulak.changes.feeds.batch(feed, body.identifiers)

    @router.get("/{feed}/{identifier}", summary="One record, as it is or as it was")
    async def record(
        feed: FeedName,
        identifier: Annotated[str, Path(max_length=500, examples=["0123456789"])],
        at: Instant = None,
    ) -> Answer:
        if identifier in WORDS:
            raise NotFound(f"{identifier} is a route here; ask for a record of that name by /batch")
        return await ulak.changes.get(feed, identifier, at)

    return router


def _syncs(ulak: Ulak) -> APIRouter:
    router = APIRouter(prefix="/api/changes/{registry}", tags=["changes"], dependencies=READERS)

    @router.post(
        "/sync",
        status_code=202,
        dependencies=WRITERS,
        summary="Begin a sync",
        responses={200: {"description": "One runs already; `syncId` is its id, `status` is partial."}},
    )
    async def sync(registry: RegistryName, response: Response, body: SyncIn | None = None) -> Answer:
        """202, or 200 with `partial` and the id of the sync that runs already."""
        begun = await ulak.changes.start(registry, inbox=None if body is None else body.inbox)
        if begun.status == SyncStatus.PARTIAL:
            response.status_code = 200
        return {"syncId": begun.sync_id, "status": begun.status}

    @router.get("/inbox", dependencies=WRITERS, summary="Where this machine's command line may put files")
    async def inbox(registry: RegistryName) -> Answer:
        return {"folder": str(await asyncio.to_thread(ulak.changes.inbox, registry))}

    @router.get("/syncs", summary="Syncs, newest first")
    async def list_syncs(
        registry: RegistryName, after: str | None = None, limit: Annotated[int, Query(ge=1, le=500)] = 50
    ) -> Answer:
        found = await ulak.changes.list_syncs(registry, after, limit)
        following = found[-1].sync_id if len(found) == limit else None
        return {"items": [msgspec.to_builtins(one) for one in found], "next": following}

    @router.get("/syncs/{sync_id}", summary="One sync")
    async def show(registry: RegistryName, sync_id: SyncId) -> Answer:
        found: Answer = msgspec.to_builtins(await ulak.changes.get_sync(registry, sync_id))
        return found

    @router.get("/syncs/{sync_id}/preview", summary="What a sync has held back")
    async def preview(registry: RegistryName, sync_id: SyncId) -> Answer:
        return await ulak.changes.preview(registry, sync_id)

    @router.post(
        "/syncs/{sync_id}/approve", status_code=202, dependencies=WRITERS, summary="Publish what was held back"
    )
    async def approve(registry: RegistryName, sync_id: SyncId, body: ApproveIn) -> Answer:
        """As a new sync. 409 when more was held back than the ceiling."""
        return {"syncId": (await ulak.changes.approve(registry, sync_id, body.ceiling)).sync_id}

    @router.post("/syncs/{sync_id}/reject", dependencies=WRITERS, summary="Drop what was held back")
    async def reject(registry: RegistryName, sync_id: SyncId) -> Answer:
        found: Answer = msgspec.to_builtins(await ulak.changes.reject(registry, sync_id))
        return found

    return router
