"""Bodies of the changes room's routes, and the wrapping of its answers: their headers, and the form of a 410."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field

from ulak.app import Ulak
from ulak.changes import istanbul
from ulak.errors import Error
from ulak.http.failure import encoded
from ulak.http.problems import to_invalid
from ulak.http.segment import SegmentRoute

LAST_SYNC = "X-Last-Sync-At"


class SyncIn(BaseModel):
    """Nothing, or the name of a folder in the registry's inbox, as the command line makes one."""

    model_config = ConfigDict(extra="forbid")

    inbox: str | None = Field(None, pattern=r"^[0-9a-f]{32}$")


class ApproveIn(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"ceiling": 500}]})

    ceiling: int = Field(ge=0, le=1_000_000_000, description="More held-back changes than this are not published.")


class BatchIn(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"identifiers": ["0123456789"]}]})

    identifiers: list[str] = Field(max_length=10_000)


class WatchIn(BaseModel):
    """Which records, which of their fields (none: all), and whom to tell: a webhook, or a job of a kind."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"keys": ["0123456789"], "webhook": "https://example.org/hook"}]},
    )

    keys: list[str] = Field(default_factory=list, max_length=10_000)
    fields: list[str] = Field(default_factory=list, max_length=100)
    webhook: str | None = Field(None, max_length=2048)
    kind: str | None = Field(None, min_length=1, max_length=100)


def feed_route(ulak: Ulak) -> type[SegmentRoute]:
    """Routes below /api/v1: every answer says when its feed was last published, refusals too."""

    class FeedRoute(SegmentRoute):
        def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
            call = super().get_route_handler()

            async def handle(request: Request) -> Response:
                response = await _answer(call, request)
                with contextlib.suppress(Error):
                    stamp = await ulak.changes.feeds.stamp(request.path_params.get("feed"))
                    if stamp is not None:
                        response.headers[LAST_SYNC] = istanbul.shown(stamp)
                return response

            return handle

    return FeedRoute


async def _answer(call: Callable[[Request], Any], request: Request) -> Response:
    try:
        response: Response = await call(request)
        return response
    except RequestValidationError as error:
        return _refusal(to_invalid(error))
    except Error as error:
        return _refusal(error)


def _refusal(error: Error) -> Response:
    status, body, headers = encoded(error)
    return Response(body, status, headers, "application/json")
