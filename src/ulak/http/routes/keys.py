"""API keys over HTTP: make, list, revoke. The token is in one answer, once."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Path
from pydantic import Field

from ulak.access.caller import Caller, Scopes
from ulak.access.keys import Key, KeyRing, check_key, keep_key, list_keys, make_key, revoke_key
from ulak.app import Ulak
from ulak.clock import maybe_datetime, to_datetime
from ulak.http.caller import Needs
from ulak.http.routes.view import View

MAX_SCOPES = 50
May = Annotated[Caller, Depends(Needs("admin"))]
KeyId = Annotated[str, Path(pattern=r"^[0-9a-f]{10}$", examples=["0a1b2c3d4e"])]


class KeyRequest(View):
    name: Annotated[str, Field(min_length=1, max_length=100, examples=["shop"])]
    scopes: Annotated[list[str], Field(min_length=1, max_length=MAX_SCOPES, examples=[["notify"]])]


class KeyView(View):
    id: str
    name: str
    scopes: list[str]
    made_at: datetime
    revoked_at: datetime | None


class KeyMade(KeyView):
    """The only time that the token is shown."""

    token: str


class KeyList(View):
    keys: list[KeyView]


def router(ulak: Ulak, ring: KeyRing, known: Scopes) -> APIRouter:
    routes = APIRouter(prefix="/api/keys", tags=["keys"])

    @routes.get("", summary="List API keys")
    async def list_(_: May) -> KeyList:
        return KeyList(keys=[KeyView(**_shown(key)) for key in await ulak.store.read(list_keys)])

    @routes.post("", summary="Make an API key", status_code=201)
    async def create(caller: May, asked: KeyRequest) -> KeyMade:
        """Nobody can give away a scope that he does not have."""
        check_key(asked.name, asked.scopes, known)
        made = make_key(asked.name, asked.scopes, ulak.clock.now())
        for scope in asked.scopes:
            caller.need(scope)
        await ulak.store.write(keep_key, made.key, caller.name)
        await ring.load(ulak.store)
        return KeyMade(**_shown(made.key), token=made.token)

    @routes.delete("/{id}", summary="Revoke an API key", status_code=204)
    async def revoke(caller: May, id: KeyId) -> None:  # noqa: A002
        """At once here, and within seconds in the other processes of a shared store."""
        await ulak.store.write(revoke_key, id, caller.name)
        await ring.load(ulak.store)

    return routes


def _shown(key: Key) -> dict[str, object]:
    revoked_at = maybe_datetime(key.revoked_at)
    return {
        "id": key.id,
        "name": key.name,
        "scopes": sorted(key.scopes),
        "made_at": to_datetime(key.made_at),
        "revoked_at": revoked_at,
    }
