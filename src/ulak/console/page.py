"""The form of a page: parts over public routes, and actions. Pages are values; one builder draws them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from typing import Any, Literal

from markupsafe import Markup

from ulak.access.caller import Caller
from ulak.console.outline import NO_OUTLINE, Outline
from ulak.console.words import Say

Form = Literal[
    "text", "id", "code", "state", "time", "number", "json", "yes", "percent", "seconds", "soft", "clock", "told"
]
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Found:
    """The answers of a page's routes, by source, and how it is looked at. A route that refused has no document."""

    documents: dict[str, Any]
    failures: dict[str, str]
    given: Mapping[str, str]
    query: Mapping[str, str]
    now: datetime
    zone: tzinfo
    say: Say
    caller: Caller
    outline: Outline = NO_OUTLINE

    def of(self, source: str | None) -> Any:
        return None if source is None else self.documents.get(source)

    def items(self, source: str, name: str = "items") -> list[Any]:
        document = self.of(source)
        return document if isinstance(document, list) else (document or {}).get(name) or []


# A route's path and query; `{id}` is a part of the page's own address. A function is called when the others answered.
Source = str | Callable[[Found], str | None]
Sentence = str | Markup


@dataclass(frozen=True, slots=True)
class Column:
    """`name` is a field of an item, dots go deeper; or a function of the item. With `link` the cell leads there."""

    title: str
    name: str | Callable[[Any, Found], Any]
    form: Form = "text"
    link: str | None = None


@dataclass(frozen=True, slots=True)
class DialogField:
    """Something that a dialog asks for; it goes into the body under its name."""

    name: str
    label: str
    value: str = ""
    form: Literal["text", "number", "json", "instant"] = "text"


@dataclass(frozen=True, slots=True)
class Action:
    """A button that asks first and then calls a public route. Texts, `path` and `body` may hold `{field}` of the row.

    With `dry`, the route is asked by a dry run how many it concerns, and `{n}` of the texts is that number.
    """

    label: str
    method: str
    path: str
    body: str | None = None
    title: str = ""
    follows: str = ""
    risk: bool = False
    go: bool = False
    dry: bool = False
    entries: tuple[DialogField, ...] = ()
    way_out: str = "Not now"
    shows: str = ""  # a field of the answer that is shown this once
    when: Callable[[Any], bool] = field(default=lambda _: True)


@dataclass(frozen=True, slots=True)
class Empty:
    """A note on a missing thing, and the one command that fills it."""

    text: str
    command: str | Callable[[Found], str] = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A list of a public route. `items` names the list in the answer; empty, the answer itself is the list."""

    title: str
    source: Source
    columns: tuple[Column, ...]
    empty: Empty
    items: str | Callable[[Any, Found], list[Any]] = "items"
    span: str = "c12"
    note: str = ""
    actions: tuple[Action, ...] = ()
    chips: tuple[str, tuple[str, ...]] | None = None  # a query's name, and its values as links
    counts: Callable[[Found], Mapping[str, int]] | None = None  # of the chips, those that are known without a walk
    filters: tuple[tuple[str, str], ...] = ()  # a query's name and its label
    moments: tuple[str, ...] = ()  # filters that are a time; one without a zone is of the console's
    following: str | Callable[[Any, Found], Any] = (
        "next"  # the answer's field that continues the list, or a function of it
    )
    after: str = "after"  # the query's name for it
    key: str = "id"
    bulk: tuple[Action, ...] = ()  # for all that fit, above the list
    sources: tuple[Source, ...] = ()  # asked before its own, which depends on them
    chosen: Action | None = None  # for those that a person selects; `{ids}` in its body is their list
    style: str = ""
    chart: Callable[[list[Any], Found], Any] | None = None  # bars above the list, of its items


@dataclass(frozen=True, slots=True)
class FactList:
    """One document of a public route, as names and values."""

    title: str
    source: Source
    names: tuple[Column, ...]
    span: str = "c4"
    note: str = ""
    actions: tuple[Action, ...] = ()


@dataclass(frozen=True, slots=True)
class Drawing:
    """A template of its own over what `prepare` makes of the answers; None leaves it out."""

    title: str
    template: str
    prepare: Callable[[Found], Any]
    span: str = "c12"
    sources: tuple[Source, ...] = ()
    actions: tuple[Action, ...] = ()
    source: Source | None = None  # whose document the actions are about
    note: str = ""


Part = Table | FactList | Drawing


@dataclass(frozen=True, slots=True)
class ConsolePage:
    """`path` is below /console/; `{id}` in it is one thing. `verdict` is the sentence that a page opens with."""

    path: str
    title: str
    parts: tuple[Part, ...]
    group: Literal["engine", "capabilities", "system"] | None = None
    verdict: Callable[[Found], Sentence] | None = None
    heading: Callable[[Found], Sentence] | None = None
    source: Source | None = None  # of one thing: without it there is no page
    actions: tuple[Action, ...] = ()
    subject: Callable[[Found], Any] | None = None  # what the actions are about; left out, the source's document
    under: str = ""  # the page in the menu that one thing belongs to
    links: Callable[[Found], list[tuple[str, str]]] | None = None


def field_of(item: Any, name: str) -> Any:
    for part in name.split("."):
        if not isinstance(item, Mapping):
            return None
        item = item.get(part)
    return item
