"""The overview over HTTP: one document, and a stream of it, a frame a second."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from fastapi.responses import StreamingResponse

from ulak.access.caller import Caller
from ulak.app import Ulak
from ulak.http.caller import Needs
from ulak.http.hot_routes import Routes
from ulak.http.overview import Overview

MayLook = Annotated[Caller, Depends(Needs("jobs"))]


def routes(ulak: Ulak) -> Routes:
    overview = Overview(ulak)
    return Routes(routers=(_router(overview),), close=overview.close)


def _router(overview: Overview) -> APIRouter:
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
