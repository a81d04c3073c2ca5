"""The page of one feed: the newest changes that its consumers read, as they were and as they are."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfo

from ulak.changes.model import Cursor
from ulak.console.diff import marked
from ulak.console.menu import STATUS
from ulak.console.page import Column, ConsolePage, Empty, Found, Table

SHOWN = 50
SIGNS = {"added": "+", "modified": "~", "removed": "−"}
ISTANBUL = ZoneInfo("Europe/Istanbul")
_ABOUT = "identifier changeType changedAt before changedFields cursor aliasChanges reason cause contentHash"


def stamp(text: str | None) -> datetime | None:
    """A feed writes its times without a zone; they are of Istanbul."""
    return datetime.fromisoformat(text).replace(tzinfo=ISTANBUL) if text else None


def _feed(found: Found) -> dict[str, Any] | None:
    feed: dict[str, Any] | None = ((found.of(STATUS) or {}).get("feeds") or {}).get(found.given["id"])
    return feed


def _newest(found: Found) -> str | None:
    """The end of the log, unless the page's address names where to begin."""
    feed = _feed(found)
    if feed is None or feed["cursor"] is None:
        return None
    head, oldest = (Cursor.parse("cursor", feed[name]) for name in ("cursor", "oldest"))
    start = Cursor(head.epoch, max(head.pos - SHOWN, oldest.pos))
    return f"/api/v1/{quote(found.given['id'], safe='')}/log?limit={SHOWN}&after={start}"


def _changes(document: Any, _: Found) -> list[dict[str, Any]]:
    return [_sides(one) for one in document["changes"][::-1]]


def _sides(change: dict[str, Any]) -> dict[str, Any]:
    fields = {name: value for name, value in change.items() if name not in _ABOUT.split() and value is not None}
    return {**change, **marked(change["before"] or {}, fields)}


def _older(document: Any, found: Found) -> str | None:
    """Where the page before this one begins; None where the log does."""
    feed = _feed(found)
    if not document["changes"] or feed is None:
        return None
    first, oldest = (Cursor.parse("cursor", one) for one in (document["changes"][0]["cursor"], feed["oldest"]))
    before = first.pos - 1
    return None if before <= oldest.pos else str(Cursor(first.epoch, max(before - SHOWN, oldest.pos)))


def _kind(change: dict[str, Any], found: Found) -> str:
    return f"{SIGNS[change['changeType']]} {found.say(change['changeType'])}"


FEED_PAGE = ConsolePage(
    "feeds/{id}",
    "Feed",
    (
        Table(
            "Changes",
            _newest,
            (
                Column("Identifier", "identifier", "code"),
                Column("Change", _kind),
                Column("Before", "before"),
                Column("After", "after"),
                Column("Published", lambda one, _: stamp(one["changedAt"]), "time"),
            ),
            Empty("No change yet.", lambda found: f"ulak changes sync {(_feed(found) or {})['registry']}"),
            items=_changes,
            key="cursor",
            following=_older,
            sources=(STATUS,),
            style="diff",
        ),
    ),
    source=STATUS,
    subject=_feed,
    heading=lambda found: found.given["id"],
    verdict=lambda found: found.say(
        "Records: {n}. Consumers read its log from any cursor on, and miss nothing.", n=(_feed(found) or {})["count"]
    ),
    under="changes",
    links=lambda found: [("Show as JSON", f"/api/v1/{found.given['id']}/log")],
)
