"""Draws pages: asks the routes that a page names, and fills the templates with what they answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any
from urllib.parse import quote, urlencode

import jinja2
import msgspec
from fastapi import FastAPI

from ulak.access.caller import Caller
from ulak.console import cells
from ulak.console import format as forms
from ulak.console.ask import Reply, ask
from ulak.console.menu import OVERVIEW, STATUS, waiting
from ulak.console.outline import NO_OUTLINE, Outline
from ulak.console.page import Action, ConsolePage, Drawing, FactList, Found, Part, Source, Table, field_of
from ulak.console.words import Say
from ulak.errors import NotFound

GROUPS = (("engine", "Engine"), ("capabilities", "Capabilities"), ("system", "System"))


@dataclass(frozen=True, slots=True)
class Glance:
    """A viewer's look at a page: by whom, how, and at what."""

    caller: Caller
    say: Say
    theme: str
    query: Mapping[str, str]
    now: datetime
    path: str

    def here(self, **changes: str) -> str:
        """The page's own address with another query: what is chosen is the address."""
        return f"?{urlencode({**self.query, **changes})}"


class PageRenderer:
    def __init__(
        self, api: FastAPI, pages: Mapping[str, ConsolePage], zone: tzinfo, outline: Outline = NO_OUTLINE
    ) -> None:
        self._api = api
        self._pages = pages
        self._zone = zone
        self._outline = outline
        tables = (part for page in pages.values() for part in page.parts if isinstance(part, Table))
        self._moments = {name for table in tables for name in table.moments}
        self._templates = jinja2.Environment(
            loader=jinja2.PackageLoader("ulak.console"), autoescape=True, trim_blocks=True, lstrip_blocks=True
        )

    def login(self, look: Glance, *, failed: bool) -> str:
        return self._fill("login.html", look, self._found(look, {}), title="Sign in", failed=failed, current=None)

    def missing(self, look: Glance, why: str) -> str:
        return self._fill("missing.html", look, self._found(look, {}), title="Nothing is here", why=why, current="-")

    async def page(self, path: str, look: Glance) -> str:
        page, given = self._find(path)
        found = await self._ask_all(page, look, given)
        if page.source is not None and (found.of(_named(page.source, found)) is None or _subject(page, found) is None):
            failure = next(iter(found.failures.values()), "")
            raise NotFound(failure or f"no {path!r:.80} here")
        return self._fill(
            "page.html" if page.path else "overview.html",
            look,
            found,
            title=page.title,
            current=page.under or page.path,
            page=page,
            heading=page.heading(found) if page.heading else None,
            verdict=page.verdict(found) if page.verdict else None,
            links=page.links(found) if page.links else [],
            actions=self._buttons(page.actions, _subject(page, found), found),
            parts=[drawn for part in page.parts if (drawn := self._part(part, found, look)) is not None],
        )

    def _find(self, path: str) -> tuple[ConsolePage, dict[str, str]]:
        if path in self._pages:
            return self._pages[path], {}
        asked = path.split("/")
        for page in self._pages.values():
            names = page.path.split("/")
            if len(names) == len(asked) and all(n == a or n.startswith("{") for n, a in zip(names, asked, strict=True)):
                return page, {n[1:-1]: a for n, a in zip(names, asked, strict=True) if n.startswith("{")}
        raise NotFound(f"no page {path!r:.80} in the console")

    async def _ask_all(self, page: ConsolePage, look: Glance, given: Mapping[str, str]) -> Found:
        """Routes that a page names, at once; then those that depend on their answers."""
        found = self._found(look, given)
        for wave in (False, True):
            named = {_named(one, found): names for one, names in _sources(page) if callable(one) is wave}
            await asyncio.gather(*(self._ask(one, names, found) for one, names in named.items() if one is not None))
        return found

    async def _ask(self, source: str, names: Iterable[str], found: Found) -> None:
        path, _, fixed = source.partition("?")
        for name, value in found.given.items():
            path = path.replace(f"{{{name}}}", quote(value, safe=""))
        query = dict(pair.split("=", 1) for pair in fixed.split("&") if pair)
        query |= {name: self._asked(name, found.query[name]) for name in names if found.query.get(name)}
        _keep(found, source, await ask(self._api, found.caller, path, query))

    def _asked(self, name: str, value: str) -> str:
        at = forms.instant(value) if name in self._moments else None
        return value if at is None or at.tzinfo is not None else at.replace(tzinfo=self._zone).isoformat()

    def _picked(self, value: str) -> str:
        """A moment as a field for one takes it: in the console's zone, without naming it."""
        at = forms.instant(value)
        if at is None:
            return ""
        return (at.astimezone(self._zone) if at.tzinfo else at).strftime("%Y-%m-%dT%H:%M:%S")

    def _found(self, look: Glance, given: Mapping[str, str]) -> Found:
        return Found({}, {}, given, look.query, look.now, self._zone, look.say, look.caller, self._outline)

    # Parts

    def _part(self, part: Part, found: Found, look: Glance) -> dict[str, Any] | None:
        if isinstance(part, Drawing):
            value = part.prepare(found)
            document = found.of(_named(part.source, found))
            drawn = {"it": value, "actions": self._buttons(part.actions, document, found)}
            return None if value is None else {"part": part, "template": part.template, **drawn}
        source = _named(part.source, found)
        if source is None:
            return None
        if source in found.failures:
            return {"part": part, "template": "failure.html", "failure": found.failures[source]}
        if isinstance(part, FactList):
            document = found.of(source)
            facts = [cells.cell(name, document, found) for name in part.names]
            return {
                "part": part, "template": "facts.html", "facts": facts,
                "actions": self._buttons(part.actions, document, found),
            }  # fmt: skip
        return {"part": part, "template": "table.html", **self._table(part, found.of(source), found, look)}

    def _table(self, part: Table, document: Any, found: Found, look: Glance) -> dict[str, Any]:
        if callable(part.items):
            items = part.items(document, found)
        else:
            items = document if not part.items else document.get(part.items) or []
        following = part.following(document, found) if callable(part.following) else field_of(document, part.following)
        return {
            "rows": [
                {
                    "id": str(field_of(item, part.key)) if part.key else str(place),
                    "cells": [cells.cell(column, item, found) for column in part.columns],
                    "actions": self._buttons(part.actions, item, found),
                }
                for place, item in enumerate(items)
            ],
            "older": look.here(**{part.after: str(following)}) if following is not None else None,
            "command": part.empty.command(found) if callable(part.empty.command) else part.empty.command,
            "chips": self._chips(part, found, look),
            "chart": part.chart(items, found) if part.chart else None,
            "filtered": any(look.query.get(name) for name in _query_names(part)),
            "bulk": [_for_all(one, part, look) for one in self._buttons(part.bulk, {}, found)] if items else [],
            "chosen": None if part.chosen is None else cells.button(part.chosen, {}, found),
        }

    def _chips(self, part: Table, found: Found, look: Glance) -> list[tuple[str, int | None, str, bool]]:
        """Links, with the number that each would show; beside another filter nobody knows it."""
        if part.chips is None:
            return []
        name, values = part.chips
        now = look.query.get(name, "")
        narrowed = any(look.query.get(other) for other, _ in part.filters)
        counts = part.counts(found) if part.counts and not narrowed else {}
        rest = {key: value for key, value in look.query.items() if key not in (name, part.after)}
        return [
            (
                look.say(value.lower().replace("_", " ") if value else "All"),
                counts.get(value),
                f"?{urlencode({**rest, name: value})}",
                now == value,
            )
            for value in ("", *values)
        ]

    def _buttons(self, actions: Iterable[Action], document: Any, found: Found) -> list[dict[str, Any]]:
        return [cells.button(one, document, found) for one in actions if document is not None and one.when(document)]

    def _fill(self, template: str, look: Glance, found: Found, **values: Any) -> str:
        return self._templates.get_template(template).render(
            look=look,
            found=found,
            groups=[(title, [page for page in self._pages.values() if page.group == group]) for group, title in GROUPS],
            _=look.say,
            say=look.say,
            time=lambda value: cells.time(value, found),
            state=lambda value, **how: cells.state(value, found, **how),
            icon=cells.icon,
            document=lambda value: cells.document(value, look.say),
            hue=forms.hue,
            picked=self._picked,
            zone=self._zone,
            clock=look.now.astimezone(self._zone).strftime("%H:%M:%S"),
            waiting=waiting(found),
            **values,
        )


def _sources(page: ConsolePage) -> Iterable[tuple[Source, list[str]]]:
    """Each with the names of the page's query that go to it."""
    yield OVERVIEW, []  # the menu's counts; one sample serves all
    yield STATUS, []
    if page.source is not None:
        yield page.source, []
    for part in page.parts:
        if isinstance(part, Drawing):
            yield from ((one, []) for one in part.sources)
        elif isinstance(part, Table):
            yield from ((one, []) for one in part.sources)
            yield part.source, [*_query_names(part), part.after]
        else:
            yield part.source, []


def _named(source: Source | None, found: Found) -> str | None:
    return source(found) if callable(source) else source


def _subject(page: ConsolePage, found: Found) -> Any:
    return page.subject(found) if page.subject else found.of(_named(page.source, found))


def _query_names(part: Table) -> list[str]:
    return [*(name for name, _ in part.filters), *([part.chips[0]] if part.chips else [])]


def _for_all(button: dict[str, Any], part: Table, look: Glance) -> dict[str, Any]:
    """A button for all that fit what the page's address asks for."""
    wanted = {name: look.query[name] for name in _query_names(part) if look.query.get(name)}
    return {**button, "body": msgspec.json.encode(wanted or {"all": True}).decode()}


def _keep(found: Found, source: str, reply: Reply) -> None:
    if reply.failure is None:
        found.documents[source] = reply.document
    else:
        found.failures[source] = reply.failure
