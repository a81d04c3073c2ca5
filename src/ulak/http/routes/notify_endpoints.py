"""Webhook endpoints and templates of notifications over HTTP."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query

from ulak.access.caller import Caller
from ulak.app import Ulak
from ulak.errors import Invalid, NotFound
from ulak.http.caller import Needs
from ulak.http.routes.notify_models import (
    AttemptsOut,
    EndpointIn,
    EndpointMade,
    EndpointOut,
    EndpointUrl,
    PublicKey,
    ReplayIn,
    ReplayOut,
    SecretMade,
    StatusOut,
    TemplateOut,
    TemplatePage,
    TemplatePreview,
    TemplatePreviewIn,
    attempt_out,
    endpoint_id,
    endpoint_out,
)
from ulak.http.routes.view import Reveal, revealed

ONLY_NOTIFIERS = [Depends(Needs("notify"))]
Notifier = Annotated[Caller, Depends(Needs("notify"))]


def endpoints_router(ulak: Ulak) -> APIRouter:
    router = APIRouter(prefix="/api/webhook-endpoints", tags=["webhook endpoints"], dependencies=ONLY_NOTIFIERS)

    @router.get("", summary="Known webhook endpoints")
    async def list_endpoints(caller: Notifier, reveal: Reveal = False) -> list[EndpointOut]:
        """A path or a query is often the secret, so addresses are masked unless they may be revealed."""
        shown = await revealed(ulak, caller, "webhook endpoints", reveal=reveal)
        rates = await ulak.notify.attempt_rates()
        return [
            endpoint_out(one, rates.get(one.url, (0, 0)), reveal=shown) for one in await ulak.notify.endpoints.all()
        ]

    @router.post(
        "", status_code=201, summary="Register an endpoint, or rotate its secret (the old one signs for a day more)"
    )
    async def register(body: EndpointIn) -> EndpointMade:
        made = await ulak.notify.endpoints.register(body.url, body.secret, requires_secret=body.require_secret)
        return EndpointMade(url=body.url, secret=made)

    @router.get("/public-key", summary="The key that verifies webhooks to endpoints without a secret of their own")
    async def public_key() -> PublicKey:
        return PublicKey(public_key=await ulak.notify.endpoints.public_key())

    @router.get("/attempts", summary="What an endpoint was sent and what it answered, newest first")
    async def list_attempts(
        url: Annotated[str | None, Query(max_length=2048)] = None,
        id: Annotated[str | None, Query(max_length=16, description="instead of url, as the list gives it")] = None,  # noqa: A002
        after: Annotated[str | None, Query(pattern=r"^[0-9]{1,19}$", description="next of the page above")] = None,
        limit: Annotated[int, Query(ge=1, le=500)] = 50,
    ) -> AttemptsOut:
        asked = await _named(ulak, url, id)
        found = await ulak.notify.attempts(asked, before=None if after is None else int(after), limit=limit)
        items = [attempt_out(one, ulak.store.ids) for one in found]
        return AttemptsOut(items=items, next=str(found[-1].sequence) if len(found) == limit else None)

    @router.post("/test", status_code=202, summary="Send a test event to an endpoint")
    async def send_test(body: EndpointUrl) -> StatusOut:
        return StatusOut(
            id=(await ulak.notify.test_endpoint(await _named(ulak, body.url, body.id))).id, status="ACCEPTED"
        )

    @router.post("/replay", status_code=202, summary="Send what failed to reach an endpoint since a time again")
    async def replay(caller: Notifier, body: ReplayIn) -> ReplayOut:
        url = await _named(ulak, body.url, body.id)
        return ReplayOut(resent=await ulak.notify.replay(url, body.since, who=caller.name))

    @router.post("/rotate", summary="Give an endpoint a new secret (the old one signs for a day more)")
    async def rotate(body: EndpointUrl) -> SecretMade:
        return SecretMade(secret=await ulak.notify.endpoints.rotate(await _named(ulak, body.url, body.id)))

    @router.post("/enable", status_code=204, summary="Send to a switched-off endpoint again")
    async def enable(body: EndpointUrl) -> None:
        await ulak.notify.endpoints.enable(await _named(ulak, body.url, body.id))

    @router.post("/forget", status_code=204, summary="Forget an endpoint and its secrets")
    async def forget(body: EndpointUrl) -> None:
        await ulak.notify.endpoints.forget(await _named(ulak, body.url, body.id))

    return router


async def _named(ulak: Ulak, url: str | None, identifier: str | None) -> str:
    """The address of an endpoint that was named by it, or by its id."""
    if url is not None:
        return url
    if identifier is None:
        raise Invalid("give the endpoint's url or its id", fields=[("url", "is missing")])
    found = next((one.url for one in await ulak.notify.endpoints.all() if endpoint_id(one.url) == identifier), None)
    if found is None:
        raise NotFound(f"no webhook endpoint {identifier}; GET /api/webhook-endpoints lists them")
    return found


def templates_router(ulak: Ulak) -> APIRouter:
    router = APIRouter(prefix="/api/templates", tags=["templates"], dependencies=ONLY_NOTIFIERS)

    @router.get("", summary="Templates of notifications, and their languages")
    async def list_templates() -> TemplatePage:
        return TemplatePage(
            items=[TemplateOut(name=name, languages=found) for name, found in ulak.notify.templates().items()]
        )

    @router.post("/{name}/preview", summary="Fill in a template in each of its languages; nothing is sent")
    async def preview(
        name: Annotated[str, Path(max_length=100, examples=["welcome"])], body: TemplatePreviewIn
    ) -> list[TemplatePreview]:
        languages = ulak.notify.templates().get(name)
        if languages is None:
            raise NotFound(f"no template {name!r:.50}; GET /api/templates lists them")
        return [await asyncio.to_thread(_previewed, ulak, name, body.variables, one) for one in languages]

    return router


def _previewed(ulak: Ulak, name: str, variables: dict[str, Any], language: str) -> TemplatePreview:
    try:
        made = ulak.notify.preview(name, variables, language)
    except Invalid as error:
        return TemplatePreview(language=language, error=str(error))
    return TemplatePreview(language=language, subject=made.subject, body=made.body, html=made.html)
