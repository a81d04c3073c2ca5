"""The audit log over HTTP: list it, and follow its chain."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query

from ulak import codec
from ulak.access.caller import Caller
from ulak.app import Ulak
from ulak.clock import to_datetime
from ulak.http.caller import Needs
from ulak.http.hot_routes import Routes
from ulak.http.routes.jobs import Limit
from ulak.http.routes.view import Cursor, View, cursor
from ulak.masking import mask_value
from ulak.spine.audit import AuditLog
from ulak.spine.units.audit import AuditLine

May = Annotated[Caller, Depends(Needs("admin"))]
Text = Annotated[str | None, Query(max_length=500)]

DIGEST = "text_sha256"
_HEX = re.compile("[0-9a-f]{64}")


class AuditView(View):
    """`hash` covers the line and the hash of the line before it."""

    seq: str
    at: datetime
    who: str
    verb: str
    object: str
    detail: Any
    hash: str


class AuditPage(View):
    """Newest first. `next` is the cursor of the next page, given back as `after`; null at the end."""

    items: list[AuditView]
    next: str | None


class ChainView(View):
    """`seq` and `hash` are of the last line that fits. Keep them: lines cut off at the end leave no other trace."""

    valid: bool
    seq: str
    hash: str
    broken_at: str | None


def routes(ulak: Ulak) -> Routes:
    return Routes(routers=(_router(ulak),))


def _router(ulak: Ulak) -> APIRouter:
    router = APIRouter(prefix="/api/audit", tags=["audit"])

    @router.get("", summary="List the audit log")
    async def list_lines(
        _: May,
        who: Text = None,
        verb: Annotated[Text, Query(examples=["kinds.pause"])] = None,
        object: Text = None,  # noqa: A002
        after: Cursor = None,
        limit: Limit = 100,
    ) -> AuditPage:
        """Newest first. `verb` is given whole (`kinds.pause`), or as its first words (`kinds`)."""
        found = await AuditLog(ulak.store).list(cursor(after), limit, who=who, verb=verb, object=object)
        more = len(found) == limit
        return AuditPage(items=[_view(line) for line in found], next=str(found[-1].seq) if more else None)

    @router.get("/verify", summary="Follow the chain of the audit log")
    async def verify(_: May) -> ChainView:
        """Every line is read, so this takes a while on a long log. `brokenAt` is the first line that does not fit."""
        state = await AuditLog(ulak.store).verify()
        broken_at = None if state.broken_at is None else str(state.broken_at)
        return ChainView(valid=broken_at is None, seq=str(state.seq), hash=state.hash, broken_at=broken_at)

    return router


def _view(line: AuditLine) -> AuditView:
    return AuditView(
        seq=str(line.seq),
        at=to_datetime(line.at),
        who=line.who,
        verb=line.verb,
        object=line.object,
        detail=_masked(codec.decode(line.detail)),
        hash=line.hash,
    )


def _masked(detail: Any) -> Any:
    """The digest of a text is there to be compared with the text, so it is shown."""
    masked = mask_value("", detail)
    if isinstance(detail, dict) and _HEX.fullmatch(str(detail.get(DIGEST))):
        masked[DIGEST] = detail[DIGEST]
    return masked
