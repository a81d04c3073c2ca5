"""Arguments of the room's verbs that are not in a form: ids, limits, states, and the mark of an Idempotency-Key."""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import TypeVar

from ulak.dispatch import forms
from ulak.errors import Invalid

E = TypeVar("E", bound=StrEnum)

MAX_LIMIT = 500


def check_id(helper: str) -> None:
    if not forms.is_helper_id(helper):
        why = f"must be {forms.HELPER_ID_RULE}"
        raise Invalid(f"a helper's id {why}", fields=[("id", why)])


def check_limit(limit: int) -> int:
    if not 1 <= limit <= MAX_LIMIT:
        raise Invalid(f"limit {limit} is out of range", fields=[("limit", f"must be 1 to {MAX_LIMIT}")])
    return limit


def one_of(kind: type[E], field: str, value: str) -> E:
    if value in kind.__members__:
        return kind(value)
    names = ", ".join(kind)
    raise Invalid(f"no {field} {value!r}; there are: {names}", fields=[(field, f"must be one of {names}")])


def mark_of(key: str, scope: str) -> str:
    """Return the mark as which a caller's key is kept."""
    if not 0 < len(key) <= 255:
        why = "must have 1 to 255 characters"
        raise Invalid(f"Idempotency-Key {why}", fields=[("Idempotency-Key", why)])
    return hashlib.sha256(f"{scope}\n{key}".encode()).hexdigest()
