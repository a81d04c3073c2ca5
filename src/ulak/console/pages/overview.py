"""The first page: what the whole store does, and who is on turn."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from ulak.console.charts import flow, spark
from ulak.console.format import instant
from ulak.console.menu import OVERVIEW, STATUS, held_snapshots
from ulak.console.now import now_of
from ulak.console.page import ConsolePage, Drawing, Found
from ulak.console.promises import SLO, promises
from ulak.console.timeline import took

BREAKERS = "/api/breakers"
CAUSES = "/api/dead/causes?limit=3"
ROOMS = ("notify", "dispatch", "compute", "changes", "actions")


def asks(found: Found) -> list[dict[str, Any]]:
    """Return the things that need a person: each with a sentence, a reason and where to decide."""
    say, totals = found.say, (found.of(OVERVIEW) or {}).get("totals", {})
    held, dead = totals.get("held", 0), totals.get("dead", 0) - totals.get("held", 0)
    waiting = []
    if held:
        waiting.append(
            {
                "hue": "held",
                "text": say("{n} jobs are held", n=held),
                "why": say("Nobody knows whether they had their effect"),
                "href": "/console/dead?errorClass=uncertain",
                "do": say("Decide on {n}", n=held),
            }
        )
    if totals.get("restored"):
        waiting.append(
            {
                "hue": "held",
                "text": say("{n} jobs are held by a restore", n=totals["restored"]),
                "why": say("They may have run elsewhere; none of them runs by itself"),
                "href": "/console/store",
                "do": say("Decide on {n}", n=totals["restored"]),
            }
        )
    for name, sync in held_snapshots(found):
        waiting.append(
            {
                "hue": "held",
                "text": say("{name}: a snapshot is held back", name=name),
                "why": say.told(sync.get("error") or ""),
                "href": f"/console/changes/{name}/{sync['syncId']}",
                "do": say("Review snapshot"),
            }
        )
    if dead > 0:
        causes = [
            f"{say.number(one['number'])} × {one['code'] or say(one['errorClass'])}" for one in found.items(CAUSES)
        ]
        waiting.append(
            {
                "hue": "dead",
                "text": say("{n} dead letters", n=dead),
                "why": ", ".join(causes),
                "href": "/console/dead",
                "do": say("Look at {n}", n=dead),
            }
        )
    return waiting


def verdict(found: Found) -> Markup:
    say, overview = found.say, found.of(OVERVIEW)
    if overview is None:
        return Markup("")
    accounted = "Everything that was accepted is accounted for."
    parts = [
        Markup.escape(
            say(accounted if overview["accounted"] else "Some accepted jobs are not accounted for: run ulak db check.")
        )
    ]
    waiting = len(asks(found))
    if waiting:
        parts.append(Markup('<a href="#person">{}</a>').format(say("{n} things need a person.", n=waiting)))
    else:
        parts.append(Markup.escape(say("Nothing needs a person.")))
    if overview["breakers"]:
        parts.append(
            Markup.escape(say("{n} destinations are dark and tried again by themselves.", n=len(overview["breakers"])))
        )
    full = [pool["kind"] for pool in full_pools(overview)]
    if full:
        parts.append(Markup('<a href="#pools">{}</a>').format(say("Full pools: {names}.", names=", ".join(full))))
    return Markup(" ").join(parts)


def full_pools(overview: dict[str, Any]) -> list[dict[str, Any]]:
    """Bounds that are reached: new work of these kinds waits, or is refused."""
    return [pool for pool in overview["pools"] if pool["active"] >= pool["capacity"]]


def _oldest(overview: dict[str, Any], found: Found) -> str:
    """How long the oldest unfinished job is overdue; nothing while all that waits is early."""
    at = None if overview["oldestAt"] is None else instant(overview["oldestAt"])
    seconds = 0.0 if at is None else (found.now - at).total_seconds()
    return found.say("oldest unfinished: {time}", time=found.say.seconds(seconds)) if seconds >= 1 else ""


def _dark(overview: dict[str, Any], found: Found) -> list[dict[str, Any]]:
    """Each with its failures and its next try, for a caller who may see them."""
    details = {one["destination"]: one for one in found.items(BREAKERS, "breakers")}
    return [{**one, **details.get(one["destination"], {})} for one in overview["breakers"]]


def _menu_order(room: tuple[str, Any]) -> tuple[int, str]:
    """The rooms as the menu has them, then kinds of a user's own."""
    name = room[0]
    return (ROOMS.index(name) if name in ROOMS else len(ROOMS), name)


def _rooms(found: Found) -> list[dict[str, Any]]:
    rooms = (found.of(OVERVIEW) or {}).get("rooms", {})
    return [
        {"name": name, **room, "now": now_of(name, room, found), "path": spark(room["spark"])}
        for name, room in sorted(rooms.items(), key=_menu_order)
    ]


def _tiles(found: Found) -> list[dict[str, Any]]:
    overview, say = found.of(OVERVIEW), found.say
    sparks, states = overview["sparks"], overview["states"]
    tiles = [
        {"name": "accepted", "title": "Accepted", "field": "perSecond.accepted", "per": say("/s"), "href": "jobs",
         "note": say("{n} so far", n=overview["totals"]["accepted"])},
        {"name": "done", "title": "Done", "field": "perSecond.done", "per": say("/s"), "href": "jobs?status=done",
         "note": _oldest(overview, found) or say("{n} so far", n=overview["totals"]["done"])},
    ]  # fmt: skip
    notes = {
        "running": say("{n} suspects, run apart", n=states["suspect"]) if states["suspect"] else "",
        "behind": say("no free slot for their key") if states["behind"] else "",
        "deferred": say("each until its time") if states["deferred"] else "",
        "ready": say("next for a worker") if states["ready"] else "",
    }
    tiles += [
        {"name": name, "title": title, "field": f"states.{name}", "per": "", "href": f"jobs?status={name}",
         "note": notes[name]}
        for name, title in (("ready", "Ready"), ("running", "Running"), ("deferred", "Deferred"), ("behind", "Behind"))
    ]  # fmt: skip
    for tile in tiles:
        where, _, what = tile["field"].partition(".")
        tile |= {"value": overview[where][what], "path": spark(sparks[tile["name"]])}
    return tiles


def _all(found: Found) -> dict[str, Any] | None:
    overview = found.of(OVERVIEW)
    if overview is None:
        return None
    return {
        "tiles": _tiles(found),
        "asks": asks(found),
        "overview": overview,
        "breakers": _dark(overview, found),
        "full": full_pools(overview),
        "flow": flow(overview["history"], overview["incidents"], found.now, found.zone),
        "rooms": _rooms(found),
        "promises": promises(found),
        "jobs": [{**job, "took": took(job)} for job in found.items("/api/jobs?limit=8", "jobs")],
    }


PAGES = (
    ConsolePage(
        "",
        "Overview",
        (
            Drawing(
                "Overview",
                "overview.html",
                _all,
                sources=(OVERVIEW, BREAKERS, CAUSES, STATUS, SLO, "/api/jobs?limit=8"),
            ),
        ),
        verdict=verdict,
    ),
)
