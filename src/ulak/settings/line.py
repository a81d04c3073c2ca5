"""Finds the line on which a TOML file sets a key. A hint for people: what it can't see has no line."""

from __future__ import annotations

import re

_TABLE = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]")
_LIST = re.compile(r"\s*\[\[\s*([^\[\]]+?)\s*\]\]")
_PAIR = re.compile(r"\s*([A-Za-z0-9_.\"' -]+?)\s*=")


def lines_of(text: str) -> dict[str, int]:
    """Key to line number, by a walk over table headers and `key =` lines."""
    found: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _LIST.match(line):  # the keys of its tables have no names of their own
            found.setdefault(_bare(header[1]), number)
            table = f"{_bare(header[1])}[]."
        elif header := _TABLE.match(line):
            table = f"{_bare(header[1])}."
        elif pair := _PAIR.match(line):
            found.setdefault(table + _bare(pair[1]), number)
    return found


def _bare(key: str) -> str:
    return ".".join(part.strip(" \"'") for part in key.split("."))
