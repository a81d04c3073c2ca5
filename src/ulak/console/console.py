"""Puts the console together: its pages, its assets, the form that asks for a key. Everything below /console/."""

from __future__ import annotations

import mimetypes
from collections.abc import Collection, Mapping
from importlib import import_module, resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote
from zoneinfo import ZoneInfo

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import RedirectResponse, Response

from ulak.access.caller import NOBODY, Caller, caller_in
from ulak.access.keys import KeyRing
from ulak.access.session import COOKIE, LIFETIME_SECONDS, Sessions
from ulak.app import Ulak
from ulak.clock import to_datetime
from ulak.console.outline import read_outline
from ulak.console.page import ConsolePage
from ulak.console.render import Glance, PageRenderer
from ulak.console.words import LANGUAGES, Say
from ulak.errors import NotFound

ASSETS = resources.files(__package__) / "assets"
THEMES = ("", "light", "dark")
OWN_PAGES = ("overview", "jobs", "engine", "system")
HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
}


def pages_of(ulak: Ulak) -> dict[str, ConsolePage]:
    """The engine's pages and those of `ulak.console.pages.<room>`, in the order in which the menu has them.

    A room may have no page.
    """
    modules = [f"ulak.console.pages.{name}" for name in (*OWN_PAGES, *(room.name for room in ulak.rooms))]
    found = [page for module in modules if find_spec(module) for page in import_module(module).PAGES]
    return {page.path: page for page in found}


def add_console(api: FastAPI, ulak: Ulak, sessions: Sessions, ring: KeyRing) -> None:
    pages = pages_of(ulak)
    section = ulak.settings.console
    renderer = PageRenderer(
        api, pages, ZoneInfo(section.time_zone), read_outline(Path(section.outline) if section.outline else None)
    )
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    async def root() -> Response:
        return RedirectResponse("/console/", 307)

    @router.get("/console/assets/{name}")
    async def asset(name: str) -> Response:
        file = ASSETS / name
        if "/" in name or not file.is_file():
            raise NotFound(f"no asset {name!r:.50}")
        return Response(
            file.read_bytes(), media_type=mimetypes.guess_type(name)[0], headers={"cache-control": "no-cache"}
        )

    @router.get("/console/login")
    async def ask_for_key(request: Request) -> Response:
        answer = _page(renderer.login(_look(request, ulak), failed=False))
        _remember(answer, request.query_params)
        return answer

    @router.post("/console/login")
    async def log_in(request: Request) -> Response:
        given = parse_qs((await request.body()).decode("latin-1")).get("key", [""])[0]
        caller = ring.find(given.strip().encode())
        if caller is None:
            return _page(renderer.login(_look(request, ulak), failed=True), 401)
        answer = RedirectResponse("/console/", 303)
        secure = request.url.scheme == "https" or request.headers.get("x-forwarded-proto") == "https"
        kept = f"Max-Age={LIFETIME_SECONDS}; Path=/; HttpOnly; SameSite=Strict{'; Secure' if secure else ''}"
        answer.headers.append("set-cookie", f"{COOKIE}={sessions.begin(caller)}; {kept}")
        return answer

    @router.get("/console/logout")
    async def log_out() -> Response:
        answer = RedirectResponse("/console/login", 303)
        answer.delete_cookie(COOKIE)
        return answer

    @router.get("/console/{path:path}")
    async def show(request: Request, path: str) -> Response:
        caller = caller_in(request.scope)
        if caller is NOBODY:
            return RedirectResponse("/console/login", 303)
        look = _look(request, ulak, caller)
        if path.strip("/") == "jobs" and look.query.get("q"):
            return RedirectResponse(found_place(look.query["q"].strip(), ulak.sample.kinds()), 303)
        try:
            answer = _page(await renderer.page(path.strip("/"), look))
        except NotFound as error:
            answer = _page(renderer.missing(look, str(error)), 404)
        _remember(answer, request.query_params)
        return answer

    api.include_router(router)


def found_place(text: str, kinds: Collection[str]) -> str:
    """Where a search leads: an id to its job, a UUID to its message, anything else to the jobs of that kind or key."""
    if text.isascii() and text.isdigit():
        return f"/console/jobs/{text}"
    if len(text) == 36 and text.count("-") == 4:
        return f"/console/notifications/{quote(text, safe='')}"
    name = "kind" if text in kinds else "key"
    return f"/console/jobs?{name}={quote(text, safe='')}"


def _page(html: str, status: int = 200) -> Response:
    return Response(html, status, HEADERS, "text/html; charset=utf-8")


def _look(request: Request, ulak: Ulak, caller: Caller = NOBODY) -> Glance:
    """Return the viewer's glance: language and theme are in the address or, after that, in a cookie."""
    query = dict(request.query_params)
    accepted = "tr" if request.headers.get("accept-language", "").lower().startswith("tr") else "en"
    language = query.pop("lang", request.cookies.get("ulak_lang", accepted))
    theme = query.pop("theme", request.cookies.get("ulak_theme", ""))
    return Glance(
        caller,
        Say(language if language in LANGUAGES else "en"),
        theme if theme in THEMES else "",
        query,
        to_datetime(ulak.store.clock.now()),
        request.url.path,
    )


def _remember(answer: Response, query: Mapping[str, Any]) -> None:
    for name, allowed in (("lang", LANGUAGES), ("theme", THEMES)):
        if query.get(name) in allowed:
            answer.set_cookie(f"ulak_{name}", str(query[name]), 365 * 86_400, samesite="strict")
