"""The actions room's door: requests in front; runs, dead letters, topics and levels through FastAPI."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Path, Query, Response
from pydantic import Field

from ulak.access.caller import Caller
from ulak.actions.dead import Mending
from ulak.actions.model import RunState
from ulak.actions.wire.events import ActionAccepted, ActionRequest, instant
from ulak.app import Ulak
from ulak.http.batch import BatchVerdict, decode_batch, reply_batch
from ulak.http.hot_routes import HotRoute, Receive, Routes, Scope, Send, read_body, reply
from ulak.http.routes.actions_directory import channels_router, profiles_router, routes_router
from ulak.http.routes.actions_models import (
    CauseOut,
    DeadLetterOut,
    DecisionOut,
    Document,
    Explanation,
    Limit,
    May,
    MessageOut,
    MessagePage,
    PageOf,
    RedriveIn,
    RedriveManyIn,
    RedrivenManyOut,
    RedrivenOut,
    RunOut,
    Snake,
    WatchOut,
    following,
    letter_out,
    schema_for,
)
from ulak.http.routes.actions_open import SIGNED, link_router, receipts_router
from ulak.http.routes.actions_plans import plans_router, simulate_router
from ulak.http.routes.view import Cursor, Id, cursor, number, revealed

EXAMPLE = {
    "event": "action.execute.requested.v1",
    "meta": {"schema_version": 1, "trace_id": "act-9f3f"},
    "context": {"device_id": "400000011D081B70", "stream_id": 9823412},
    "data": {
        "action_plan_id": 21,
        "evaluation_key": "rule-114:2026-03-12T20:55",
        "group_id": 12,
        "rule_id": 114,
        "variables": {"temperature": 71},
    },
}
Place = Annotated[
    str, Path(max_length=300, description="Topic, partition and offset.", examples=["cinga.action.requested:0:42"])
]
PlaceFilter = Annotated[str | None, Query(max_length=300, description="`next` of the page before.")]
BYTES: dict[int | str, dict[str, Any]] = {200: {"content": {"application/octet-stream": {}}}}
DRY_RUN = "A dry run: nothing was sent."
RunId = Annotated[
    str, Path(max_length=100, description="The run's id.", examples=["0ca0d6db-9140-8000-8000-0000756c616b"])
]


def routes(ulak: Ulak) -> Routes:
    return Routes(
        hot=(_accept_route(ulak), _batch_route(ulak)),
        routers=(
            profiles_router(ulak),
            channels_router(ulak),
            routes_router(ulak),
            plans_router(ulak),
            simulate_router(ulak),
            _runs(ulak),
            _dead_letters(ulak),
            _unreadable(ulak),
            _watching(ulak),
            link_router(ulak),
            receipts_router(ulak),
        ),
        signed=SIGNED,
        scope="run action plans, and keep their directory",
    )


def _accept_route(ulak: Ulak) -> HotRoute:
    encode = msgspec.json.Encoder().encode

    async def accept(_scope: Scope, receive: Receive, send: Send, _caller: Caller) -> int:
        return await reply(send, 202, encode(await ulak.actions.accept(await read_body(receive))))

    return HotRoute(
        "POST", "/api/actions/requests", accept, "actions", "Ask for an action plan to be run",
        ActionRequest, ActionAccepted,
        description="Answers as soon as it is durable. A repeat of the `evaluation_key` is the first run; the same key "
        "for another plan is a conflict.",
        tag="actions", examples={"request": EXAMPLE}, statuses=(400, 401, 403, 409, 413, 429, 500, 503),
    )  # fmt: skip


def _batch_route(ulak: Ulak) -> HotRoute:
    async def accept_many(_scope: Scope, receive: Receive, send: Send, _caller: Caller) -> int:
        items = decode_batch(await read_body(receive), ulak.settings.http.max_batch)
        return await reply_batch(send, await ulak.actions.accept_batch(items))

    return HotRoute(
        "POST", "/api/actions/requests/batch", accept_many, "actions", "Ask for many, each on its own merits",
        list[ActionRequest], list[BatchVerdict[ActionAccepted]], status=207, tag="actions",
        examples={"two": [EXAMPLE, EXAMPLE]},
    )  # fmt: skip


def _runs(ulak: Ulak) -> APIRouter:
    router = APIRouter(prefix="/api/actions/runs", tags=["actions"])

    @router.get("", summary="List runs, newest first")
    async def list_runs(
        _: May,
        state: Annotated[str | None, Query(description=f"One of: {', '.join(RunState)}.", examples=["done"])] = None,
        after: Annotated[str | None, Query(max_length=100, description="`next` of the page above.")] = None,
        limit: Limit = 50,
    ) -> PageOf[RunOut]:
        found, more = await ulak.actions.runs(state=state, after=after, limit=limit)
        return PageOf[RunOut](items=[RunOut(**one) for one in found], next=more)

    @router.get("/{identifier}", summary="One run with its steps")
    async def read(_: May, identifier: RunId) -> RunOut:
        return RunOut(**await ulak.actions.run(identifier))

    @router.post("/{identifier}/cancel", summary="Stop a run")
    async def cancel(caller: May, identifier: RunId) -> RunOut:
        """Cancel a run. Steps that wait are taken back; a send that is under way ends by itself."""
        return RunOut(**await ulak.actions.cancel(identifier, who=caller.name))

    @router.post("/{identifier}/acknowledge", summary="Say that somebody has seen it; stops what is still to come")
    async def acknowledge(caller: May, identifier: RunId) -> RunOut:
        return RunOut(**await ulak.actions.acknowledge(identifier, who=caller.name))

    @router.get("/{identifier}/explain", summary="Every decision about a run, and why")
    async def explain(_: May, identifier: RunId) -> Explanation:
        found = await ulak.actions.explain(identifier)
        return Explanation(run_id=identifier, decisions=[DecisionOut(**one) for one in found])

    return router


def _dead_letters(ulak: Ulak) -> APIRouter:
    router = APIRouter(prefix="/api/actions/dead-letters", tags=["actions: dead letters"])

    @router.get("", summary="List dead letters, oldest first")
    async def list_letters(
        _: May,
        error_code: Annotated[str | None, Query(max_length=100, examples=["SMTP_TIMEOUT"])] = None,
        reason: Annotated[str | None, Query(max_length=50, examples=["retry_exhausted"])] = None,
        after: Cursor = None,
        limit: Limit = 50,
    ) -> PageOf[DeadLetterOut]:
        found = await ulak.actions.dead_letters(
            error_code=error_code, reason=reason, after=cursor(after) or 0, limit=limit
        )
        return PageOf[DeadLetterOut](items=[letter_out(one) for one in found], next=following(found, limit))

    @router.get("/causes", summary="Dead letters by cause, the most frequent first")
    async def causes(_: May) -> PageOf[CauseOut]:
        return PageOf[CauseOut](items=[CauseOut(**one) for one in await ulak.actions.causes()], next=None)

    @router.post(
        "/redrive",
        status_code=202,
        summary="Send all matching again, at a rate if one is given",
        responses={200: {"model": RedrivenManyOut, "description": DRY_RUN}},
    )
    async def redrive_many(caller: May, body: RedriveManyIn, response: Response) -> RedrivenManyOut:
        """With a rate the answer comes first and names those that will go; one such redrive goes at a time.
        `GET /api/dead/redrive` shows how it goes, `DELETE` stops it."""
        rate = None if body.dry_run else body.rate_per_second
        wanted: dict[str, Any] = {"error_code": body.error_code, "reason": body.reason, "who": caller.name}
        if rate is None:
            ids = await ulak.actions.redrive_many(dry_run=body.dry_run, **wanted)
        else:
            ids = await ulak.actions.start_redrive(rate, **wanted)
        response.status_code = 200 if body.dry_run else 202
        return RedrivenManyOut(matched=len(ids), dry_run=body.dry_run, ids=ids)

    @router.get("/{id}", summary="One dead letter")
    async def read(_: May, id: Id) -> DeadLetterOut:  # noqa: A002
        return letter_out(await ulak.actions.dead_letter(number(id, "dead letter")))

    @router.patch("/{id}", summary="Mend what a dead letter says", openapi_extra=schema_for(Mending))
    async def mend(caller: May, id: Id, body: Document) -> DeadLetterOut:  # noqa: A002
        """`variables` are laid over the run's, `subject` and `body` replace the step's. Addresses are mended in
        the directory."""
        return letter_out(await ulak.actions.mend(number(id, "dead letter"), body, who=caller.name))

    @router.post(
        "/{id}/redrive",
        status_code=202,
        summary="Send a dead letter again",
        responses={200: {"model": RedrivenOut, "description": DRY_RUN}},
    )
    async def redrive(caller: May, id: Id, response: Response, body: RedriveIn | None = None) -> RedrivenOut:  # noqa: A002
        """Under its old id and idempotency key, with fresh attempts. A dry run (200) only says what would go."""
        dry_run = body is not None and body.dry_run
        letter = await ulak.actions.redrive(number(id, "dead letter"), dry_run=dry_run, who=caller.name)
        response.status_code = 200 if dry_run else 202
        return RedrivenOut(id=id, dry_run=dry_run, step=letter_out(letter))

    return router


class UnreadableOut(Snake):
    id: str = Field(examples=["cinga.action.requested:0:42"])
    topic: str
    partition: int
    offset: int
    size: int = Field(description="In bytes.")
    at: str


def _unreadable(ulak: Ulak) -> APIRouter:
    router = APIRouter(prefix="/api/actions/unreadable", tags=["actions: dead letters"])

    @router.get("", summary="List messages of the bus that are not requests")
    async def list_messages(_: May, after: PlaceFilter = None, limit: Limit = 50) -> PageOf[UnreadableOut]:
        found = await ulak.actions.unreadable(after=after, limit=limit)
        items = [UnreadableOut(**one._asdict() | {"id": one.id, "at": instant(one.at)}) for one in found]
        return PageOf[UnreadableOut](items=items, next=following(items, limit))

    @router.get("/{id}", summary="The bytes of one, as they came", response_class=Response, responses=BYTES)
    async def read(caller: May, id: Place) -> Response:  # noqa: A002
        """Needs the scope `reveal` too, and is audited: nobody knows what is in them."""
        body = await ulak.actions.unreadable_body(id)
        await revealed(ulak, caller, f"unreadable message {id}", reveal=True)
        return Response(body, media_type="application/octet-stream")

    return router


def _watching(ulak: Ulak) -> APIRouter:
    router = APIRouter(prefix="/api/actions", tags=["actions"])

    @router.get("/messages", summary="What the topics get, in commit order")
    async def messages(
        _: May,
        topic: Annotated[str | None, Query(max_length=249, examples=["cinga.action.executed"])] = None,
        after: Cursor = None,
        limit: Limit = 100,
    ) -> MessagePage:
        found, position = await ulak.actions.messages(topic=topic, after=cursor(after) or 0, limit=limit)
        return MessagePage(messages=[MessageOut(**one) for one in found], after=position)

    @router.get("/schemas/{event}", summary="The JSON Schema of an event")
    async def schema(_: May, event: Annotated[str, Path(max_length=100)]) -> dict[str, Any]:
        return ulak.actions.schema(event)

    @router.get("/slo", summary="How well the four targets are met, and what is left of each budget")
    async def slo(_: May) -> dict[str, Any]:
        return await ulak.actions.service_levels()

    @router.get("/watchdog", summary="Whether every accepted run ended, or waits for a reason")
    async def watchdog(_: May) -> WatchOut:
        return WatchOut(**await ulak.actions.watchdog())

    return router
