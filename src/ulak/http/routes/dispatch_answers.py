"""The dispatch room's hot routes: a new task, the answers to its offers, and positions in bulk."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any
from uuid import UUID

import msgspec

from ulak import codec, complaint
from ulak.access.caller import Caller
from ulak.app import Ulak
from ulak.dispatch.command import TaskView
from ulak.dispatch.forms import (
    AnswerForm,
    CancelForm,
    NamedPosition,
    ReleaseForm,
    TaskForm,
    document_of,
    read_form,
    read_positions,
)
from ulak.errors import Invalid
from ulak.http.hot_routes import Endpoint, HotRoute, Receive, Scope, Send, idempotency_key, read_body, reply
from ulak.http.routes.dispatch_models import HelpTaskOut, help_task_out

MAX_POSITIONS = 10_000
MAX_POSITIONS_BYTES = 4 * 1024 * 1024

TASK = {"requesterId": "ayse", "category": "market", "latitude": 41.0082, "longitude": 28.9784}
ANSWER = {"helperId": "ahmet"}

# How a form, once read, is said to the room.
Say = Callable[[UUID, Any], Awaitable[TaskView]]


class PositionsTaken(msgspec.Struct):
    """How many positions will be written soon, and whose ids nobody has."""

    accepted: int
    unknown: list[str]


def hot_routes(ulak: Ulak) -> Iterator[HotRoute]:
    room = ulak.dispatch
    yield _positions_route(ulak)
    yield _open_route(ulak)
    yield _answer_route(
        ulak, "accept", AnswerForm, lambda task, said: room.accept(task, said.helper_id), "Accept an offer",
        "The first to accept has the task; every other gets 409 with a `code`.", ANSWER,
    )  # fmt: skip
    yield _answer_route(
        ulak, "reject", AnswerForm, lambda task, said: room.reject(task, said.helper_id), "Refuse an offer",
        "The next is asked at once, and is in the answer.", ANSWER,
    )  # fmt: skip
    yield _answer_route(
        ulak, "complete", AnswerForm, lambda task, said: room.complete(task, said.helper_id), "The task is done",
        "Only the helper who has it can say so.", ANSWER,
    )  # fmt: skip
    yield _answer_route(
        ulak, "release", ReleaseForm, lambda task, said: room.release(task, said.helper_id, said.reason),
        "Give a task back", "It goes on to the next, and never to the same helper again.",
        {**ANSWER, "reason": "a flat tyre"},
    )  # fmt: skip
    yield _answer_route(
        ulak, "cancel", CancelForm, lambda task, said: room.cancel(task, said.reason), "No help is needed any more",
        "Open offers are withdrawn, and whoever has the task is told.", {"reason": "a neighbour helped"},
    )  # fmt: skip


def _positions_route(ulak: Ulak) -> HotRoute:
    async def take(_scope: Scope, receive: Receive, send: Send, _caller: Caller) -> int:
        positions = read_positions(await read_body(receive), MAX_POSITIONS)
        unknown = await ulak.dispatch.move_many(positions)
        return await reply(send, 202, codec.encode(PositionsTaken(len(positions) - len(unknown), unknown)))

    return HotRoute(
        "POST", "/helpers/positions", take, "dispatch", "Where many helpers are, as hints that are written soon",
        list[NamedPosition], PositionsTaken, tag="helpers",
        description="At most 10,000 and 4 MiB. A crash loses those that are not written yet, never an offer.",
        examples={"one": [{"id": "ahmet", "latitude": 41.0085, "longitude": 28.979}]},
        max_body_bytes=MAX_POSITIONS_BYTES,
    )  # fmt: skip


def _open_route(ulak: Ulak) -> HotRoute:
    async def open_task(scope: Scope, receive: Receive, send: Send, caller: Caller) -> int:
        document, key = document_of(await read_body(receive)), idempotency_key(scope)
        view = await ulak.dispatch.open(document, idempotency_key=key, scope=caller.id)
        return await reply(send, 201, _encoded(ulak, view))

    return HotRoute(
        "POST", "/tasks", open_task, "dispatch", "Ask for help", TaskForm, HelpTaskOut, status=201, tag="tasks",
        description="Answers when the first search and its offers are made: OFFERED, or at its end if nobody is there.",
        headers={"Idempotency-Key": "A repeat with the same key and body opens one task."},
        examples={"task": TASK}, statuses=(400, 401, 403, 409, 413, 429, 500, 503),
    )  # fmt: skip


def _answer_route(
    ulak: Ulak, verb: str, form: type[msgspec.Struct], say: Say, summary: str, about: str, example: dict[str, Any]
) -> HotRoute:
    return HotRoute(
        "PUT", f"/tasks/{{task}}/{verb}", _endpoint(ulak, form, say), "dispatch", summary, form, HelpTaskOut,
        status=200, tag="tasks", description=about, examples={verb: example},
        statuses=(400, 401, 403, 404, 409, 413, 429, 500, 503), body_required=form is not CancelForm,
    )  # fmt: skip


def _endpoint(ulak: Ulak, form: type[msgspec.Struct], say: Say) -> Endpoint:
    async def answer(scope: Scope, receive: Receive, send: Send, _caller: Caller) -> int:
        task = _task_of(scope)
        said = read_form(form, document_of(await read_body(receive)))
        return await reply(send, 200, _encoded(ulak, await say(task, said)))

    return answer


def _encoded(ulak: Ulak, view: TaskView) -> bytes:
    return help_task_out(view, ulak.store.ids).model_dump_json(by_alias=True).encode()


def _task_of(scope: Scope) -> UUID:
    try:
        return UUID(scope["path_params"]["task"])
    except ValueError:
        raise Invalid(f"the task's id {complaint.UUID}", fields=[("task", complaint.UUID)]) from None
