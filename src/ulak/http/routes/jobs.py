"""Jobs over HTTP: enqueue (a hot route), list, show, cancel."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Depends, Query

from ulak.access.caller import Caller
from ulak.app import Ulak
from ulak.errors import Invalid, NotFound
from ulak.http import prefer
from ulak.http.caller import Needs
from ulak.http.failure import camel
from ulak.http.hot_routes import Endpoint, HotRoute, Receive, Routes, Scope, Send, decode, read_body, reply
from ulak.http.known_kinds import KnownKinds
from ulak.http.routes.view import (
    AnyId,
    Cursor,
    Id,
    JobDetail,
    JobView,
    Reveal,
    View,
    cursor,
    job_detail,
    job_view,
    number,
    revealed,
)
from ulak.http.routes.view import Instant as ViewInstant
from ulak.spine.job import Priority
from ulak.spine.units.records import STATUSES

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Instant = Annotated[datetime, msgspec.Meta(tz=True)]
TEN_YEARS_SECONDS = 315_360_000
_PRIORITY = {level.name: level for level in Priority}


class JobRequest(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """A job of any kind. Give `delaySeconds` or `dueAt`, both at most ten years; instants carry their time zone."""

    kind: Text
    payload: Any = None
    priority: Literal["URGENT", "HIGH", "NORMAL", "LOW"] = "NORMAL"
    key: Text | None = None
    slots: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1
    delay_seconds: Annotated[float, msgspec.Meta(ge=0, le=TEN_YEARS_SECONDS)] | None = None
    due_at: Instant | None = None
    expires_at: Instant | None = None
    unique_key: Text | None = None
    continuation: Text | None = None
    on_uncertain: Literal["resend", "hold"] = "resend"


class JobAccepted(msgspec.Struct, rename="camel"):
    """The job is in the store: it will be run, or be found among the dead letters."""

    id: str
    status: Literal["ACCEPTED"] = "ACCEPTED"


class JobPage(View):
    """Newest first. `before` is the cursor of the next page; null at the end."""

    jobs: list[JobView]
    before: str | None


class CancelView(View):
    id: str
    status: Literal["cancelled", "cancelling"]


_decoder = msgspec.json.Decoder(JobRequest)


def routes(ulak: Ulak) -> Routes:
    return Routes(hot=(_enqueue_route(ulak),), routers=(_router(ulak),))


def _enqueue_route(ulak: Ulak) -> HotRoute:
    return HotRoute(
        "POST", "/api/jobs", _enqueue(ulak), "jobs", "Enqueue a job", JobRequest, JobAccepted, tag="jobs",
        description="Answers when the job is durable. A live job with the same `uniqueKey` is answered instead.",
        headers=prefer.HEADER,
        examples={"greeting": {"kind": "demo.greet", "payload": {"name": "world"}, "priority": "HIGH"}},
    )  # fmt: skip


def _enqueue(ulak: Ulak) -> Endpoint:
    kinds = KnownKinds(ulak)

    async def enqueue(_: Scope, receive: Receive, send: Send, caller: Caller) -> int:
        asked: JobRequest = decode(_decoder, await read_body(receive))
        named = {name: kind for name, kind in (("kind", asked.kind), ("continuation", asked.continuation)) if kind}
        for name, kind in named.items():
            caller.need_for_kind(kind)
            await kinds.check(name, kind)
        try:
            identifier = await _enqueued(ulak, asked)
        except Invalid as error:
            raise camel(error) from None
        kinds.note(named.values())
        return await reply(send, 202, msgspec.json.encode(JobAccepted(str(identifier))))

    return enqueue


async def _enqueued(ulak: Ulak, asked: JobRequest) -> int:
    return await ulak.enqueue(
        asked.kind,
        asked.payload,
        priority=_PRIORITY[asked.priority],
        key=asked.key,
        slots=asked.slots,
        delay_seconds=asked.delay_seconds,
        due_at=asked.due_at,
        expires_at=asked.expires_at,
        unique_key=asked.unique_key,
        continuation=asked.continuation,
        on_uncertain=asked.on_uncertain,
    )


Status = Annotated[str | None, Query(description=f"One of: {', '.join(STATUSES)}.", examples=["ready"])]
Kind = Annotated[str | None, Query(max_length=200, examples=["demo.greet"])]
Limit = Annotated[int, Query(ge=1, le=1000)]
May = Annotated[Caller, Depends(Needs("jobs"))]


def _router(ulak: Ulak) -> APIRouter:
    router = APIRouter(prefix="/api/jobs", tags=["jobs"])

    @router.get("", summary="List jobs")
    async def list_jobs(
        _: May,
        kind: Kind = None,
        status: Status = None,
        key: Kind = None,
        accepted_after: Annotated[ViewInstant | None, Query(alias="acceptedAfter")] = None,
        accepted_before: Annotated[ViewInstant | None, Query(alias="acceptedBefore")] = None,
        before: Cursor = None,
        limit: Limit = 100,
    ) -> JobPage:
        """Newest first, live and finished, without payloads."""
        found = await ulak.jobs.list(
            kind, status, cursor(before), limit, whole=False, key=key,
            accepted_after=accepted_after, accepted_before=accepted_before,
        )  # fmt: skip
        return JobPage(
            jobs=[job_view(record) for record in found], before=str(found[-1].id) if len(found) == limit else None
        )

    @router.get("/{id}", summary="Show a job")
    async def show_job(caller: May, id: AnyId, reveal: Reveal = False) -> JobDetail:  # noqa: A002
        """With its timeline. The payload is masked unless it may be revealed and is asked for."""
        ids = ulak.store.ids
        found = ids.from_uuid(id) if "-" in id else number(id)
        if found is None:
            raise NotFound(f"no job {id}; the UUID is not of this store")
        record = await ulak.jobs.get(found)
        return job_detail(
            record, ids.to_text(found), reveal=await revealed(ulak, caller, f"job {found}", reveal=reveal)
        )

    @router.post("/{id}/cancel", summary="Cancel a job")
    async def cancel_job(_: May, id: Id) -> CancelView:  # noqa: A002
        """At once while it waits (`cancelled`), by a mark that its worker sees while it runs (`cancelling`)."""
        verdict = await ulak.jobs.cancel(number(id))
        assert verdict != "finished"  # that is an error by then
        return CancelView(id=id, status=verdict)

    return router
