"""Closing breakers by hand."""

from __future__ import annotations

from ulak.masking import mask_text
from ulak.spine.breaker import Breaker, save_breakers
from ulak.spine.store import Tx
from ulak.spine.units import audit


def reset_breakers(tx: Tx, who: str, destinations: list[str]) -> None:
    save_breakers(tx, [Breaker(destination) for destination in destinations])
    for destination in destinations:
        audit.record(tx, who, "breakers.reset", mask_text(destination))
