"""What a page is: a title, tables over public routes, and actions. Pages are values; one template draws them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Form = Literal["text", "id", "code", "state", "time", "number", "json", "yes", "percent"]
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """`name` is a field of an item, dots go deeper. With `link` the cell leads there; `{}` is the value."""

    title: str
    name: str
    form: Form = "text"
    link: str | None = None


@dataclass(frozen=True, slots=True)
class Action:
    """A button that asks first and then calls a public route. `path` and `body` may hold `{field}` of the row."""

    label: str
    method: str
    path: str
    body: str | None = None
    confirm: str = ""
    harmful: bool = False
    when: Callable[[Row], bool] = field(default=lambda _: True)


@dataclass(frozen=True, slots=True)
class TableView:
    """A list of a public route. `items` names the list in the answer; empty, the answer itself is the list.

    `empty` is the one command that fills it.
    """

    title: str
    source: str
    columns: tuple[Column, ...]
    items: str = "items"
    empty: str = ""
    actions: tuple[Action, ...] = ()
    filters: tuple[str, ...] = ()
    following: str = "next"  # the answer's field that continues the list
    after: str = "after"  # the query's name for it
    key: str = "id"


@dataclass(frozen=True, slots=True)
class FactsView:
    """One document of a public route, drawn as names and values."""

    title: str
    source: str
    names: tuple[tuple[str, str, Form], ...]


@dataclass(frozen=True, slots=True)
class ConsolePage:
    """`path` is below /console/; with `{id}` in it, one thing is shown whole. `drawing` names a template of its own."""

    path: str
    title: str
    views: tuple[TableView | FactsView, ...] = ()
    group: Literal["engine", "capabilities", "system"] | None = None
    detail: str | None = None
    actions: tuple[Action, ...] = ()
    drawing: str | None = None
    verdict: str = ""
