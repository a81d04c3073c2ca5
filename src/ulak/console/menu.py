"""Counts in the menu: they stand only where a person or a breaker waits."""

from __future__ import annotations

from typing import Any, NamedTuple

from ulak.console.page import Found

OVERVIEW, STATUS = "/api/overview", "/api/v1/status"
HELD = frozenset({"quarantined", "withheld"})  # verdicts on a snapshot that waits for a person


class MenuCount(NamedTuple):
    number: int
    hue: str
    of_what: str


def held_snapshots(found: Found) -> list[tuple[str, dict[str, Any]]]:
    """Registries whose last sync waits for a person."""
    registries = (found.of(STATUS) or {}).get("registries", {})
    return [
        (name, one["lastSync"])
        for name, one in registries.items()
        if (one.get("lastSync") or {}).get("verdict") in HELD
    ]


def waiting(found: Found) -> dict[str, MenuCount]:
    """By the path of the page; those that nobody waits for are left out."""
    overview, say = found.of(OVERVIEW) or {"totals": {"dead": 0}, "breakers": []}, found.say
    counts = {
        "dead": MenuCount(overview["totals"]["dead"], "dead", say("need a person")),
        "breakers": MenuCount(len(overview["breakers"]), "uncertain", say("open")),
        "changes": MenuCount(len(held_snapshots(found)), "held", say("need a person")),
    }
    return {path: one for path, one in counts.items() if one.number > 0}
