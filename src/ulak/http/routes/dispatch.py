"""The dispatch room's routes: helpers and their positions, tasks, explanations and fairness."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any
from uuid import UUID

import msgspec
from fastapi import APIRouter, Depends, Header, Path, Query, Request
from fastapi.responses import StreamingResponse

from ulak import codec
from ulak.app import Ulak
from ulak.dispatch.command import TaskView
from ulak.dispatch.forms import (
    HELPER_ID,
    HELPER_ID_RULE,
    HelperForm,
    PositionForm,
    document_of,
    read_form,
)
from ulak.dispatch.model import HelperStatus, TaskState
from ulak.dispatch.nearby.bbox import parse_box
from ulak.dispatch.stream import ClosedOffer, OfferStream, Told
from ulak.errors import Invalid
from ulak.http.caller import Needs
from ulak.http.hot_routes import Routes
from ulak.http.routes.dispatch_answers import hot_routes
from ulak.http.routes.dispatch_models import (
    ExplainOut,
    FairnessOut,
    HelperOut,
    HelperPage,
    HelpTaskDetail,
    HelpTaskOut,
    HelpTaskPage,
    OpenOffersOut,
    fairness_out,
    help_task_detail,
    help_task_out,
    helper_out,
    open_offer_out,
    search_out,
)
from ulak.http.sse import sse, sse_reset, stream_of
from ulak.ids import Ids
from ulak.spine.event import Reset

ONLY_DISPATCHERS = [Depends(Needs("dispatch"))]
HelperPath = Annotated[
    str,
    Path(description=f"Yours: {HELPER_ID_RULE}", pattern=HELPER_ID, examples=["ahmet"]),
]
TaskPath = Annotated[UUID, Path(description="The id of a task.")]
Limit = Annotated[int, Query(ge=1, le=500)]

HELPER = {"name": "Ahmet", "latitude": 41.0085, "longitude": 28.979, "skills": ["car"]}


def routes(ulak: Ulak) -> Routes:
    return Routes(
        hot=tuple(hot_routes(ulak)),
        routers=(_helpers(ulak), _tasks(ulak), _figures(ulak)),
        scope="offer tasks to helpers and answer offers",
    )


def _asks(
    form: type[msgspec.Struct], example: dict[str, Any] | None = None, *, required: bool = True
) -> dict[str, Any]:
    """How the OpenAPI shows a body that a form reads."""
    content: dict[str, Any] = {"schema": _inlined(msgspec.json.schema(form))}
    if example is not None:
        content["example"] = example
    return {"requestBody": {"required": required, "content": {"application/json": content}}}


def _inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without references: FastAPI's document has no place for a form's own."""
    parts = schema.pop("$defs", {})

    def whole(value: Any) -> Any:
        if isinstance(value, dict):
            name = str(value.get("$ref", "")).removeprefix("#/$defs/")
            return whole(parts[name]) if name else {key: whole(one) for key, one in value.items()}
        return [whole(one) for one in value] if isinstance(value, list) else value

    found: dict[str, Any] = whole(schema)
    return found


async def _document(request: Request) -> Any:
    return document_of(await request.body())


def _helpers(ulak: Ulak) -> APIRouter:
    router = APIRouter(prefix="/helpers", tags=["helpers"], dependencies=ONLY_DISPATCHERS)
    stream = OfferStream(lambda: ulak.loops.tail)  # there are loops only while this Ulak is open

    def shown(helper: Any) -> HelperOut:
        return helper_out(helper, ulak.dispatch.policy, ulak.store.clock.now())

    @router.get("", summary="List helpers, by id")
    async def list_helpers(
        status: Annotated[str | None, Query(description=f"One of: {', '.join(HelperStatus)}.")] = None,
        bbox: Annotated[str | None, Query(description="west,south,east,north in degrees")] = None,
        after: Annotated[str | None, Query(description="`next` of the page before")] = None,
        limit: Limit = 50,
    ) -> HelperPage:
        box = None if bbox is None else parse_box(bbox)
        found = await ulak.dispatch.helpers(status=status, bbox=box, after=after, limit=limit)
        following = found[-1].helper if len(found) == limit else None
        return HelperPage(items=[shown(one) for one in found], next=following)

    @router.put("/{helper}", summary="Create a helper or change it", openapi_extra=_asks(HelperForm, HELPER))
    async def put_helper(helper: HelperPath, request: Request) -> HelperOut:
        """A field that is left out keeps its value. `isActive: true` ends a pause."""
        return shown(await ulak.dispatch.put_helper(helper, await _document(request)))

    @router.get("/{helper}", summary="One helper")
    async def get_helper(helper: HelperPath) -> HelperOut:
        return shown(await ulak.dispatch.helper(helper))

    @router.delete("/{helper}", status_code=204, summary="Forget a helper")
    async def delete_helper(helper: HelperPath) -> None:
        """409 while it has an open offer or a running task."""
        await ulak.dispatch.forget_helper(helper)

    @router.put(
        "/{helper}/position", summary="Where a helper is, durable when answered", openapi_extra=_asks(PositionForm)
    )
    async def put_position(helper: HelperPath, request: Request) -> HelperOut:
        form = read_form(PositionForm, await _document(request))
        return shown(await ulak.dispatch.move(helper, form.latitude, form.longitude))

    @router.get("/{helper}/offers", summary="A helper's open offers")
    async def list_offers(helper: HelperPath) -> OpenOffersOut:
        """Looking at them ends a pause."""
        return OpenOffersOut(items=[open_offer_out(one, ulak.store.ids) for one in await ulak.dispatch.offers(helper)])

    @router.get(
        "/{helper}/offers/stream", summary="A helper's offers as server-sent events", response_class=StreamingResponse
    )
    async def follow(
        helper: HelperPath, last_event_id: Annotated[str | None, Header(alias="Last-Event-ID")] = None
    ) -> StreamingResponse:
        """`offer` events from `Last-Event-ID` on; without it, the open ones and then the new ones.

        `closed` (`offerId`, `how`) says that an offer needs no answer any more. An event `reset` says that some may be
        missing, because the log was pruned or restored since: read the list again.
        """
        after = _cursor(last_event_id) if last_event_id else None
        await ulak.dispatch.pull(helper)
        start = await stream.begin(after)
        return stream_of(_as_events(stream.follow(helper, start, fresh=after is None), ulak.store.ids), start.cursor)

    return router


def _cursor(last_event_id: str) -> int:
    if not (last_event_id.isascii() and last_event_id.isdigit() and len(last_event_id) < 20):
        why = "must be the id of an event of this stream: a whole number"
        raise Invalid(f"Last-Event-ID {why}", fields=[("Last-Event-ID", why)])
    return int(last_event_id)


async def _as_events(told: AsyncIterator[Told], ids: Ids) -> AsyncIterator[bytes]:
    async for seq, item in told:
        if item is None:  # a comment: nobody is told, and a dead line is noticed
            yield b": still here\n\n"
        elif isinstance(item, Reset):
            yield sse_reset(item)
        elif isinstance(item, ClosedOffer):
            data = codec.encode({"offerId": ids.to_text(item.id), "how": item.how})
            yield sse(seq, "closed", data)
        else:
            yield sse(seq, "offer", open_offer_out(item, ids).model_dump_json(by_alias=True).encode())


def _tasks(ulak: Ulak) -> APIRouter:
    router = APIRouter(prefix="/tasks", tags=["tasks"], dependencies=ONLY_DISPATCHERS)

    def shown(view: TaskView) -> HelpTaskOut:
        return help_task_out(view, ulak.store.ids)

    @router.get("", summary="List tasks, newest first")
    async def list_tasks(
        status: Annotated[str | None, Query(description=f"One of: {', '.join(TaskState)}.")] = None,
        helper_id: Annotated[str | None, Query(alias="helperId", description="Whose task it is or was.")] = None,
        requester_id: Annotated[str | None, Query(alias="requesterId")] = None,
        after: Annotated[str | None, Query(description="`next` of the page before")] = None,
        limit: Limit = 50,
    ) -> HelpTaskPage:
        found = await ulak.dispatch.tasks(
            status=status, helper=helper_id, requester=requester_id, after=after, limit=limit
        )
        following = ulak.store.ids.to_text(found[-1].task.id) if len(found) == limit else None
        return HelpTaskPage(items=[shown(one) for one in found], next=following)

    @router.get("/{task}", summary="One task with its timeline")
    async def get_task(task: TaskPath) -> HelpTaskDetail:
        return help_task_detail(*await ulak.dispatch.task_with_timeline(task), ulak.store.ids)

    @router.get("/{task}/explain", summary="Why it was offered to whom")
    async def explain(task: TaskPath) -> ExplainOut:
        """Per search who was ranked where, and who was left out for which reason."""
        searches = await ulak.dispatch.explain(task)
        return ExplainOut(task_id=str(task), searches=[search_out(one) for one in searches])

    return router


def _figures(ulak: Ulak) -> APIRouter:
    router = APIRouter(prefix="/api/dispatch", tags=["tasks"], dependencies=ONLY_DISPATCHERS)

    @router.get("/fairness", summary="How evenly work is shared, and how long people wait")
    async def fairness() -> FairnessOut:
        return fairness_out(await ulak.dispatch.fairness())

    return router
