"""Answers as tables: ids stay whole, instants are in local time, and an empty table says what fills it."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table

PIPE_COLUMNS = 400
MAX_SHORT = 30  # characters of a value that is shown whole or not at all, such as an instant
MIN_LAST = 20  # characters of a last column that is cut, so that it is worth its place
GAP = 2
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


def table(rows: list[dict[str, Any]], *columns: str, empty: str = "Nothing is there.") -> Callable[[], None]:
    """Prints the named fields of each row, the most important first: those that do not fit the terminal go.

    In a pipe nothing is folded, so that `grep` sees whole lines.
    """

    def show() -> None:
        if not rows:
            typer.echo(empty)
            return
        console = Console()
        width = console.width if console.is_terminal else PIPE_COLUMNS
        cells = [[cell(row.get(column)) for column in columns] for row in rows]
        widths = fit(columns, cells, width)
        drawn = Table(box=None, pad_edge=False)
        for column, most in zip(columns, widths, strict=False):
            drawn.add_column(column, no_wrap=True, overflow="ellipsis", max_width=most)
        for row in cells:
            drawn.add_row(*row[: len(widths)])
        (console if console.is_terminal else Console(width=PIPE_COLUMNS)).print(drawn, markup=False)
        if len(widths) < len(columns):
            typer.echo(f"(more in a wider terminal, or with --json: {', '.join(columns[len(widths) :])})", err=True)

    return show


def fit(columns: tuple[str, ...], cells: list[list[str]], width: int) -> list[int]:
    """The widths of the columns that have room. The first, an id as a rule, is never cut, nor is a short value; a long
    text is, to half of the line, and to the rest of it at the end."""
    widths: list[int] = []
    for number, name in enumerate(columns):
        longest = max(len(name), *(len(row[number]) for row in cells))
        if number == 0:
            widths.append(longest)
            continue
        may_be_cut = longest > MAX_SHORT
        wanted = min(longest, width // 2) if may_be_cut else longest
        left = width - sum(widths) - GAP * number
        if wanted > left:
            return [*widths, left] if may_be_cut and left >= MIN_LAST else widths
        widths.append(wanted)
    return widths


def cell(value: Any) -> str:
    """The first line of a text that has several."""
    if value is None:
        return "-"
    first, *rest = fact(value).split("\n")
    return f"{first} …" if rest else first


def fact(value: Any) -> str:
    """A value on a line of its own: an instant in local time, a document as JSON."""
    return local(value) if isinstance(value, str) else msgspec.json.encode(value).decode()


def local(text: str) -> str:
    """An instant in the zone of this machine, which is named; any other text as it is."""
    if not _INSTANT.fullmatch(text):
        return text
    return datetime.fromisoformat(text).astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")
