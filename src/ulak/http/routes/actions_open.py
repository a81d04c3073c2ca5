"""Routes that a signature opens and no key: the page behind a message's link, and receipts of providers."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import HTMLResponse, PlainTextResponse

from ulak.actions.acknowledge import asking_page, thanking_page
from ulak.app import Ulak
from ulak.channels.callbacks import Callbacks
from ulak.http.routes.actions_models import Snake

LINK, RECEIPTS = "/api/actions/acknowledge/{token}", "/api/actions/receipts/{provider}"
SIGNED = (("GET", LINK), ("POST", LINK), ("GET", RECEIPTS), ("POST", RECEIPTS))
ACKNOWLEDGE = "acknowledge"  # the id of the button under a Slack message; its value is the link's token
Token = Annotated[str, Path(max_length=100, description="As it stands in the link.")]
Provider = Annotated[str, Path(max_length=50, examples=["twilio"])]
# Nobody may put the page into a frame and have people tap on what they don't see.
# The address is the key: it stays out of caches and of what is told to other sites.
_PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class ReceiptsTaken(Snake):
    known: int


def link_router(ulak: Ulak) -> APIRouter:
    router = APIRouter(tags=["actions: by signature"])

    @router.get(LINK, summary="A page that asks for one tap to acknowledge a run", response_class=HTMLResponse)
    async def ask(token: Token) -> HTMLResponse:
        """It only asks, since scanners open links."""
        ulak.actions.run_of_link(token)
        return HTMLResponse(asking_page(), headers=_PAGE_HEADERS)

    @router.post(LINK, summary="Acknowledge a run by its signed link", response_class=HTMLResponse)
    async def acknowledge(token: Token) -> HTMLResponse:
        await ulak.actions.acknowledge_by_link(token)
        return HTMLResponse(thanking_page(), headers=_PAGE_HEADERS)

    return router


def receipts_router(ulak: Ulak) -> APIRouter:
    router = APIRouter(tags=["actions: by signature"])
    callbacks = Callbacks(ulak.settings)

    @router.get(
        RECEIPTS,
        summary="The answer to Meta, which asks whether this address is ours",
        response_class=PlainTextResponse,
    )
    async def challenge(
        provider: Provider,
        mode: Annotated[str, Query(alias="hub.mode", max_length=100)] = "",
        token: Annotated[str, Query(alias="hub.verify_token", max_length=500)] = "",
        asked: Annotated[str, Query(alias="hub.challenge", max_length=500)] = "",
    ) -> PlainTextResponse:
        query = {"hub.mode": mode, "hub.verify_token": token, "hub.challenge": asked}
        return PlainTextResponse(callbacks.challenge(provider, query))

    @router.post(RECEIPTS, summary="What a provider says of messages, in its own form and with its signature")
    async def receive(provider: Provider, request: Request) -> ReceiptsTaken:
        """A repeat says nothing new. A tap on the button `acknowledge` under a Slack message acknowledges its run."""
        told = callbacks.read(provider, dict(request.headers), await request.body(), ulak.clock.now())
        for tap in told.taps:
            if tap.action == ACKNOWLEDGE:
                await ulak.actions.acknowledge_by_link(tap.value, who=f"slack:{tap.user}")
        return ReceiptsTaken(known=await ulak.actions.take_receipts(told.receipts) if told.receipts else 0)

    return router
