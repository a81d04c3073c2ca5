"""A unit of work with a line in the audit chain, in the same commit. Lines name ids, never people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ulak.spine.store import Tx
from ulak.spine.units.audit import record as record_audit

R = TypeVar("R")

PYTHON = "python"  # who acts, when nobody says who


def audited(unit: Callable[..., R], verb: str, who: str) -> Callable[..., R]:
    def run(tx: Tx, *given: Any) -> R:
        made = unit(tx, *given)
        record_audit(tx, who, verb, _object_of(made, given))
        return made

    return run


def _object_of(made: Any, given: tuple[Any, ...]) -> str:
    if given and isinstance(given[0], int):
        return str(given[0])
    while isinstance(made, list | tuple) and not hasattr(made, "id") and made:
        made = made[0]
    return str(getattr(made, "id", ""))
