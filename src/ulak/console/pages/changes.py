"""Pages of changes: registries, feeds, syncs; a snapshot that is held back: guards, differences, approve or reject."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from ulak.console.bars import draw_syncs, numbers_of
from ulak.console.diff import marked
from ulak.console.feed import FEED_PAGE, SIGNS, stamp
from ulak.console.menu import STATUS, held_snapshots
from ulak.console.page import Action, Column, ConsolePage, DialogField, Drawing, Empty, Found, Table

SYNC = "/api/changes/{registry}/syncs/{id}"
SYNCS = "/api/changes/{registry}/syncs?limit=24"
PREVIEW = f"{SYNC}/preview"
GUARDS = {"modified": "Modified", "removed": "Removed", "aliases": "Aliases lost", "count": "Size of the list"}
SHOWN = 20  # differences on the page


def _registries(document: Any, _: Found) -> list[dict[str, Any]]:
    feeds = document.get("feeds", {})
    return [
        {
            "name": name,
            "feeds": [feed for feed, one in feeds.items() if one["registry"] == name],
            "count": sum(one["count"] for one in feeds.values() if one["registry"] == name),
            "lastSync": one.get("lastSync") or {},
        }
        for name, one in document.get("registries", {}).items()
    ]


def _feeds(document: Any, _: Found) -> list[dict[str, Any]]:
    return [{"name": name, **one} for name, one in document.get("feeds", {}).items()]


def _fed(found: Found) -> str | None:
    """A sync that published something says what each of its feeds got."""
    return SYNC if (found.of(SYNC) or {}).get("feeds") else None


def _chosen_registry(found: Found) -> str | None:
    """The one that the address names, else the one that was synced."""
    registries = (found.of(STATUS) or {}).get("registries", {})
    synced = [name for name, one in registries.items() if one.get("lastSync")]
    return found.query.get("registry") or next(iter((*synced, *registries)), None)


def _syncs_source(found: Found) -> str | None:
    name = _chosen_registry(found)
    return None if name is None else f"/api/changes/{name}/syncs?limit=24"


def _syncs(document: Any, found: Found) -> list[dict[str, Any]]:
    registry = found.given.get("registry") or _chosen_registry(found)
    return [{**one, "registry": registry} for one in document["items"]]


def _numbers(sync: dict[str, Any], found: Found) -> str:
    totals = numbers_of(sync).items()
    return ", ".join(f"{found.say.number(n)} {found.say(name)}" for name, n in totals if n) or found.say("nothing")


def _published(sync: dict[str, Any], _: Found) -> datetime | None:
    """When it was published; of a snapshot that is held back, the feeds' time is that of the list before."""
    if sync["verdict"] == "quarantined":
        return None
    return stamp(max((feed.get("until") or "" for feed in (sync.get("feeds") or {}).values()), default=None))


def _verdict(found: Found) -> str:
    held = held_snapshots(found)
    registries = (found.of(STATUS) or {}).get("registries", {})
    if held:
        return found.say(
            "Snapshots that wait for a person: {names}. Readers still get the previous list.",
            names=", ".join(name for name, _ in held),
        )
    if not any(one.get("lastSync") for one in registries.values()):
        return found.say("Registries: {n}. No list was read yet.", n=len(registries))
    return found.say("Registries: {n}. Everything that was read is published.", n=len(registries))


def held_number(found: Found) -> int:
    feeds = ((found.of(PREVIEW) or {}).get("feeds") or {}).values()
    return sum(feed["added"] + feed["modified"] + feed["removed"] for feed in feeds)


def _sync_verdict(found: Found) -> Markup:
    sync, say = found.of(SYNC), found.say
    if found.of(PREVIEW) is None or not found.of(PREVIEW)["held"]:
        return Markup.escape(
            say(
                "{verdict}: {numbers}.",
                verdict=say.sentence(sync["verdict"] or sync["status"]),
                numbers=_numbers(sync, found),
            )
        )
    return Markup("{}. <b>{}</b>").format(
        say.told(sync.get("error") or ""), say("Nothing is published; readers still get the previous list.")
    )


def _decidable(found: Found) -> dict[str, Any]:
    """The sync with where it is and how many changes it still holds back."""
    held = held_number(found) if (found.of(PREVIEW) or {}).get("held") else 0
    return {**found.of(SYNC), "registry": found.given["registry"], "held": held}


def _guards(found: Found) -> list[dict[str, Any]] | None:
    feeds = (found.of(PREVIEW) or {}).get("feeds") or {}
    rows = [
        {"feed": feed, "name": found.say(GUARDS.get(guard, guard)), **facts, "tripped": facts["value"] > facts["limit"],
         "width": min(facts["value"] / max(facts["limit"], 0.001) * 70, 100)}
        for feed, one in feeds.items()
        for guard, facts in (one.get("guards") or {}).items()
    ]  # fmt: skip
    return sorted(rows, key=lambda row: not row["tripped"]) or None


def _summary(found: Found) -> dict[str, int] | None:
    feeds = (found.of(PREVIEW) or {}).get("feeds")
    if feeds is None:
        return None
    return {name: sum(feed[name] for feed in feeds.values()) for name in ("added", "modified", "removed")}


def _record_sources(found: Found) -> list[tuple[str, str]]:
    return [(feed, one["identifier"]) for feed, one in _fitting(found)[:SHOWN] if one["changeType"] != "added"]


def _fitting(found: Found) -> list[tuple[str, dict[str, Any]]]:
    """Of the changes that the preview has, those that the page's address asks for: a change's kind, and a text."""
    kind, text = found.query.get("change", ""), found.query.get("contains", "").casefold()
    feeds = ((found.of(PREVIEW) or {}).get("feeds") or {}).items()
    return [
        (feed, one)
        for feed, facts in feeds
        for one in facts["changes"]
        if kind in ("", one["changeType"]) and text in f"{one['identifier']} {one.get('record') or ''}".casefold()
    ]


def _diff(found: Found) -> dict[str, Any] | None:
    """The first changes of what is held back: as published, and as the snapshot has it."""
    totals, kept = _summary(found), _fitting(found)
    if totals is None:
        return None
    rows = [
        {"identifier": one["identifier"], "change": one["changeType"], "sign": SIGNS[one["changeType"]],
         **marked(_fields(found.of(_published_record(feed, one["identifier"]))), _fields(one.get("record")))}
        for feed, one in kept[:SHOWN]
    ]  # fmt: skip
    wanted = found.query.get("change", "")
    chips = [("", found.say("All"), sum(totals.values()))]
    chips += [(name, f"{SIGNS[name]} {found.say(name)}", number) for name, number in totals.items()]
    return {
        "rows": rows,
        "chips": [(name, text, number, name == wanted) for name, text, number in chips],
        "change": wanted,
        "contains": found.query.get("contains", ""),
    }


def _fields(record: Any) -> dict[str, Any]:
    """Only what a registry publishes of a record: its plain fields."""
    found = record.get("record", record) if isinstance(record, dict) else {}
    return {
        name: value for name, value in found.items() if name not in {"identifier", "changeType", "stamp", "at", "until"}
    }


def _published_record(feed: str, identifier: str) -> str:
    """An identifier is a list's own text: it may have anything in it, also what divides an address."""
    return f"/api/v1/{feed}/{quote(identifier, safe='')}"


def _before(place: int) -> Any:
    def source(found: Found) -> str | None:
        wanted = _record_sources(found)
        return _published_record(*wanted[place]) if place < len(wanted) else None

    return source


SYNC_COLUMNS = (
    Column(
        "Sync",
        lambda one, _: Markup('<a class="id" href="/console/changes/{}/{}">{}</a>').format(
            one["registry"], one["syncId"], one["syncId"]
        ),
    ),
    Column("Verdict", "verdict", "state"),
    Column("What changed", _numbers),
    Column("Published", _published, "time"),
    Column("Took", "seconds", "seconds"),
    Column("Trouble", lambda one, found: found.say.told(one["error"] or "")),
)
SYNC_NOW = Action("Sync now", "POST", "/api/changes/{name}/sync", title="Sync {name} now?",
                  follows="The list is read again; guards judge it before anything is published.", go=True)  # fmt: skip
PAGES = (
    ConsolePage(
        "changes",
        "Changes",
        (
            Table(
                "Registries",
                STATUS,
                (
                    Column("Registry", "name", "text", "changes?registry={}"),
                    Column("Last sync", "lastSync.verdict", "state"),
                    Column("Records", "count", "number"),
                    Column("Feeds", "feeds"),
                    Column("Trouble", lambda one, found: found.say.told(one["lastSync"].get("error") or "")),
                ),
                Empty("No registry is configured.", "ulak config show"),
                items=_registries,
                key="name",
                actions=(SYNC_NOW,),
            ),
            Table(
                "Syncs",
                _syncs_source,
                SYNC_COLUMNS,
                Empty("No sync yet.", lambda found: f"ulak changes sync {_chosen_registry(found)}"),
                items=_syncs,
                key="syncId",
                chart=draw_syncs,
            ),
            Table(
                "Feeds",
                STATUS,
                (
                    Column("Feed", "name", "text", "feeds/{}"),
                    Column("Registry", "registry"),
                    Column("Records", "count", "number"),
                    Column("Published until", lambda one, _: stamp(one["until"]), "time"),
                    Column("Cursor", "cursor", "code"),
                    Column("State hash", lambda one, _: f"{one['stateHash'][:12]}…", "code"),
                ),
                Empty("No feed.", "ulak config show"),
                items=_feeds,
                key="name",
            ),
        ),
        "capabilities",
        verdict=_verdict,
    ),
    ConsolePage(
        "changes/{registry}/{id}",
        "Snapshot",
        (
            Drawing("Guards", "guards.html", _guards, "c7", (PREVIEW,)),
            Drawing("What would change", "summary.html", _summary, "c5"),
            Drawing("Changes", "diff.html", _diff, sources=tuple(_before(place) for place in range(SHOWN))),
            Table(
                "Feeds",
                _fed,
                (
                    Column("Feed", "name", "text", "feeds/{}"),
                    Column("Added", "added", "number"),
                    Column("Modified", "modified", "number"),
                    Column("Removed", "removed", "number"),
                    Column("Withheld", "withheld", "number"),
                    Column("Records", "count", "number"),
                    Column("Published until", lambda one, _: stamp(one["until"]), "time"),
                    Column("Cursor", "cursor", "code"),
                ),
                Empty("No feed."),
                items=_feeds,
                key="name",
            ),
            Table(
                "Syncs of this list",
                SYNCS,
                SYNC_COLUMNS,
                Empty("No sync yet."),
                items=_syncs,
                key="syncId",
                chart=draw_syncs,
            ),
        ),
        source=SYNC,
        heading=lambda found: found.say("Snapshot of {name}", name=found.given["registry"]),
        verdict=_sync_verdict,
        under="changes",
        subject=_decidable,
        actions=(
            Action(
                "Reject snapshot",
                "POST",
                "/api/changes/{registry}/syncs/{syncId}/reject",
                title="Reject {held} changes?",
                follows="The snapshot is dropped; the next sync reads the list anew.",
                risk=True,
                when=lambda sync: bool(sync.get("held")),
            ),
            Action(
                "Publish {held} changes",
                "POST",
                "/api/changes/{registry}/syncs/{syncId}/approve",
                body="{}",
                title="Publish {held} changes?",
                follows="Readers get them at once, and rules start their jobs. A published change stays published.",
                go=True,
                entries=(DialogField("ceiling", "Publish only if there are no more than", "{held}", "number"),),
                when=lambda sync: bool(sync.get("held")),
            ),
        ),
    ),
    FEED_PAGE,
)
