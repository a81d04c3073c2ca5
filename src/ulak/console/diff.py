"""Two records side by side, with the words that differ marked."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup


def marked(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """`before` and `after` as markup, and the names of the fields that differ."""
    names = [name for name in dict.fromkeys((*before, *after)) if before.get(name) != after.get(name)]
    pairs = [_words(_text(before.get(name)), _text(after.get(name))) for name in names]
    return {
        "fields": names if before and after else [],
        "before": Markup("<br>").join(pair[0] for pair in pairs if pair[0]),
        "after": Markup("<br>").join(pair[1] for pair in pairs if pair[1]),
    }


def _text(value: Any) -> str:
    if value is None:
        return ""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _words(before: str, after: str) -> tuple[Markup, Markup]:
    old, new = before.split(), after.split()
    left, right = [], []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        same = kind == "equal"
        left += [_piece(" ".join(old[a:b]), "" if same else "del")] if b > a else []
        right += [_piece(" ".join(new[c:d]), "" if same else "ins")] if d > c else []
    return Markup(" ").join(left), Markup(" ").join(right)


def _piece(text: str, tag: str) -> Markup:
    return Markup(f"<{tag}>{{}}</{tag}>").format(text) if tag else Markup.escape(text)  # noqa: S704 - a tag of ours
