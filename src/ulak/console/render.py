"""Draws pages: asks the routes that a page names, and fills the templates with what they answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

import jinja2
import msgspec
from fastapi import FastAPI
from markupsafe import Markup

from ulak.access.caller import Caller
from ulak.app import Ulak
from ulak.console import format as forms
from ulak.console.ask import Reply, ask
from ulak.console.page import Action, Column, ConsolePage, FactsView, TableView
from ulak.console.timeline import draw_timeline
from ulak.console.words import word
from ulak.errors import NotFound

LIMIT = "50"


@dataclass(frozen=True, slots=True)
class Glance:
    caller: Caller
    language: str
    theme: str
    query: Mapping[str, str]
    now: datetime
    path: str


class PageRenderer:
    def __init__(self, api: FastAPI, ulak: Ulak, pages: Mapping[str, ConsolePage]) -> None:
        self._api = api
        self._ulak = ulak
        self._pages = pages
        self._templates = jinja2.Environment(loader=jinja2.PackageLoader("ulak.console"), autoescape=True)

    async def login(self, look: Glance, *, failed: bool) -> str:
        return self._fill("login.html", look, title="Sign in", failed=failed, current="")

    async def page(self, path: str, look: Glance) -> str:
        if not path:
            return await self._overview(look)
        page, given = self._find(path)
        if page.detail is not None:
            return await self._one(page, given, look)
        found = await asyncio.gather(*(self._ask(view, look) for view in page.views))
        views = [self._view(view, reply, look) for view, reply in zip(page.views, found, strict=True)]
        drawn = {"page": page, "views": views, "title": page.title, "current": page.path}
        return self._fill(page.drawing or "page.html", look, replies=[reply.document for reply in found], **drawn)

    def _find(self, path: str) -> tuple[ConsolePage, str]:
        if path in self._pages:
            return self._pages[path], ""
        parent, _, rest = path.partition("/")
        page = self._pages.get(f"{parent}/{{id}}")
        if page is None or not rest:
            raise NotFound(f"no page {path!r:.80} in the console")
        return page, rest

    async def _overview(self, look: Glance) -> str:
        overview, jobs, slo = await asyncio.gather(
            ask(self._api, look.caller, "/api/overview"),
            ask(self._api, look.caller, "/api/jobs", {"limit": "8"}),
            ask(self._api, look.caller, "/api/actions/slo"),
        )
        return self._fill(
            "overview.html",
            look,
            title="Overview",
            current="",
            overview=overview.document if overview.failure is None else None,
            failure=overview.failure,
            jobs=jobs.document["jobs"] if jobs.failure is None else [],
            slo=slo.document if slo.failure is None else None,
            chart=_chart(overview.document) if overview.failure is None else "",
        )

    async def _one(self, page: ConsolePage, identifier: str, look: Glance) -> str:
        assert page.detail is not None
        reply = await ask(self._api, look.caller, page.detail.replace("{id}", quote(identifier, safe="")))
        if reply.status == 404:
            raise NotFound(reply.failure or f"no {identifier!r:.80}")
        drawing = draw_timeline(reply.document) if isinstance(reply.document, dict) else None
        return self._fill(
            page.drawing or "detail.html",
            look,
            title=page.title,
            current=page.path.partition("/")[0],
            page=page,
            identifier=identifier,
            document=reply.document,
            failure=reply.failure,
            timeline=drawing,
            actions=[self._action(one, reply.document, look) for one in page.actions if one.when(reply.document)]
            if reply.failure is None
            else [],
        )

    async def _ask(self, view: TableView | FactsView, look: Glance) -> Reply:
        query: dict[str, str] = {}
        if isinstance(view, TableView):
            query = {name: look.query[name] for name in (*view.filters, view.after) if look.query.get(name)}
        path, _, fixed = view.source.partition("?")
        query |= dict(pair.split("=", 1) for pair in fixed.split("&") if pair)
        return await ask(self._api, look.caller, path, query)

    def _view(self, view: TableView | FactsView, reply: Reply, look: Glance) -> dict[str, Any]:
        if isinstance(view, FactsView) or reply.failure is not None:
            return {"view": view, "failure": reply.failure, "facts": self._facts(view, reply, look), "rows": []}
        items = reply.document if not view.items else reply.document.get(view.items) or []
        following = reply.document.get(view.following) if isinstance(reply.document, dict) else None
        rows = [
            {
                "id": str(_field(item, view.key) or place),
                "cells": [self._cell(column, item, look) for column in view.columns],
                "actions": [self._action(one, item, look) for one in view.actions if one.when(item)],
            }
            for place, item in enumerate(items)
        ]
        older = f"?{urlencode({**look.query, view.after: following})}" if following else None
        return {"view": view, "failure": None, "rows": rows, "older": older, "facts": []}

    def _facts(self, view: TableView | FactsView, reply: Reply, look: Glance) -> list[tuple[str, Any]]:
        if not isinstance(view, FactsView) or reply.failure is not None:
            return []
        return [
            (title, self._cell(Column(title, name, form), reply.document, look)["html"])
            for title, name, form in view.names
        ]

    def _cell(self, column: Column, item: Any, look: Glance) -> dict[str, Any]:
        value = _field(item, column.name)
        shown = self._shown(column, value, look)
        if column.link is not None and value is not None:
            place = column.link.replace("{}", quote(str(value), safe=""))
            shown = Markup('<a class="{}" href="/console/{}">{}</a>').format("id", place, shown)
        return {"title": column.title, "html": shown, "numeric": column.form in {"number", "percent"}}

    def _shown(self, column: Column, value: Any, look: Glance) -> Any:
        if value is None or value == "":
            return Markup('<span class="soft">–</span>')
        match column.form:
            case "time":
                return _time(value, look)
            case "number":
                return forms.number(value, look.language) if isinstance(value, int | float) else value
            case "percent":
                return forms.percent(value, look.language) if isinstance(value, int | float) else value
            case "state":
                return _state(value, look.language)
            case "code" | "id":
                return Markup("<code>{}</code>").format(value)
            case "json":
                return Markup("<code>{}</code>").format(msgspec.json.encode(value).decode()[:300])
            case "yes":
                return word("yes" if value else "no", look.language)
            case _:
                return ", ".join(map(str, value)) if isinstance(value, list) else value

    def _action(self, action: Action, item: Any, look: Glance) -> dict[str, str]:
        def filled(text: str, *, encode: bool) -> str:
            for name in _names(text):
                value = str(_field(item, name))
                text = text.replace(f"{{{name}}}", quote(value, safe="") if encode else value)
            return text

        return {
            "label": word(action.label, look.language),
            "method": action.method,
            "path": filled(action.path, encode=True),
            "body": "" if action.body is None else filled(action.body, encode=False),
            "confirm": word(action.confirm or action.label, look.language),
            "harmful": "yes" if action.harmful else "",
        }

    def _fill(self, template: str, look: Glance, **values: Any) -> str:
        menu = [page for page in self._pages.values() if page.group is not None]
        return self._templates.get_template(template).render(
            look=look,
            menu=menu,
            _=lambda text: word(text, look.language),
            number=lambda value: forms.number(value, look.language),
            percent=lambda value: forms.percent(value, look.language),
            time=lambda value: _time(value, look),
            state=lambda value: _state(value, look.language),
            hue=forms.hue,
            zone="UTC",
            **values,
        )


def _time(value: Any, look: Glance) -> Markup:
    at = forms.instant(value)
    exact = str(value) if at is None else at.isoformat()
    return Markup('<time datetime="{0}" title="{0}">{1}</time>').format(
        exact, forms.ago(value, look.now, look.language)
    )


def _state(value: Any, language: str) -> Markup:
    name = forms.hue(value)
    icon = Markup('<svg class="icon" aria-hidden="true"><use href="#i-{}"/></svg>').format(name)
    return Markup('<span class="state s-{}">{}{}</span>').format(name, icon, word(str(value).lower(), language))


def _field(item: Any, name: str) -> Any:
    for part in name.split("."):
        if not isinstance(item, dict):
            return None
        item = item.get(part)
    return item


def _names(text: str) -> list[str]:
    return [
        part.partition("}")[0] for part in text.split("{")[1:] if "}" in part and part.partition("}")[0].isidentifier()
    ]


def _chart(document: dict[str, Any]) -> dict[str, str]:
    """Two lines over 15 minutes, as paths of a drawing 900 wide and 228 high."""
    points = document["history"]
    top = max([1.0, *(max(accepted, done) for _, accepted, done in points)])
    end = points[-1][0] if points else 0

    def place(at: float, value: float) -> str:
        return f"{900 - (end - at):.1f},{228 - value / top * 210:.1f}"

    accepted = " L".join(place(at, value) for at, value, _ in points)
    done = " L".join(place(at, value) for at, _, value in points)
    if not points:
        return {"accepted": "", "done": "", "area": "", "top": f"{top:.0f}"}
    first = f"{900 - (end - points[0][0]):.1f}"
    return {
        "accepted": f"M{accepted}",
        "done": f"M{done}",
        "area": f"M{first},228 L{done} L900,228 Z",
        "top": f"{top:.0f}",
    }
