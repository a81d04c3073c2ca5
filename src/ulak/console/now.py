"""One sentence for each room: what it does at the moment, by the counts of the overview."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from markupsafe import Markup

from ulak.console.feed import stamp
from ulak.console.format import ago, instant, left
from ulak.console.menu import HELD, OVERVIEW, STATUS
from ulak.console.page import Found, Row, Sentence

MAX_NAMED = 2  # registries in a sentence


def now_of(name: str, room: Row, found: Found) -> Sentence:
    """A room of a user's own kinds has the plain sentence."""
    parts = SENTENCES.get(name, _jobs)(room, found)
    if room["dead"]:
        parts.append(found.say("{n} dead", n=room["dead"]))
    return Markup("; ").join(parts or [found.say("Nothing waits, nothing runs")])


def _counts(room: Row) -> tuple[int, int]:
    """Jobs whose turn has come, and jobs that wait: for their time, or for another of their key."""
    parked = sum(kind.get("deferred", 0) + kind.get("behind", 0) for kind in room["kinds"].values())
    return room["waiting"] + room["running"] - parked, parked


def _jobs(room: Row, found: Found) -> list[Sentence]:
    under_way, parked = _counts(room)
    parts: list[Sentence] = [found.say("{n} under way", n=under_way)] if under_way else []
    return [*parts, found.say("{n} wait", n=parked)] if parked else parts


def _notify(room: Row, found: Found) -> list[Sentence]:
    dark = len((found.of(OVERVIEW) or {}).get("breakers", ()))
    parts = _jobs(room, found)
    return [found.say("{n} destinations are dark", n=dark), *parts] if dark and parts else parts


def _dispatch(room: Row, found: Found) -> list[Sentence]:
    """Each round of offers has one timer: the first to fire is the next deadline."""
    say, round_ = found.say, room["kinds"].get("dispatch.expire", {})
    searches = sum(number for name, number in room["kinds"].get("dispatch.search", {}).items() if name != "oldestAt")
    parts: list[Sentence] = []
    if round_.get("deferred"):
        at = instant(round_["oldestAt"])
        assert at is not None
        clock = Markup('<span data-until="{}">{}</span>').format(at.isoformat(), left((at - found.now).total_seconds()))
        parts.append(say("{n} tasks wait for an answer", n=round_["deferred"]))
        parts.append(Markup.escape(say("next deadline in {time}")).format(time=clock))
    if searches:
        parts.append(say("{n} searches for a helper", n=searches))
    return parts or [say("Nobody waits for an answer")]


def _compute(room: Row, found: Found) -> list[Sentence]:
    running, waiting = room["running"], room["waiting"]
    parts: list[Sentence] = [found.say("{n} scripts run", n=running)] if running else []
    return [*parts, found.say("{n} scripts wait", n=waiting)] if waiting else parts


def _changes(_: Row, found: Found) -> list[Sentence]:
    registries: dict[str, Any] = (found.of(STATUS) or {}).get("registries", {})
    synced = [(name, one["lastSync"]) for name, one in registries.items() if one.get("lastSync")]
    if not synced:
        return [found.say("No list was read yet")]
    first = sorted(synced, key=lambda one: one[1]["verdict"] not in HELD)  # what waits for a person
    parts: list[Sentence] = [_last_sync(name, sync, found) for name, sync in first[:MAX_NAMED]]
    if len(synced) > MAX_NAMED:
        parts.append(found.say("{n} more lists", n=len(synced) - MAX_NAMED))
    return parts


def _last_sync(name: str, sync: dict[str, Any], found: Found) -> str:
    say, verdict = found.say, sync["verdict"] or sync["status"]
    if verdict in HELD:
        return say("{name}: a snapshot is held back", name=name)
    untils = [feed["until"] for feed in (sync.get("feeds") or {}).values() if feed.get("until")]
    at = stamp(max(untils, default=None))
    told = f"{name}: {say(verdict.lower().replace('_', ' '))}"
    return told if at is None else f"{told} {ago(at, found.now, found.zone, say)}"


def _actions(room: Row, found: Found) -> list[Sentence]:
    under_way, parked = _counts(room)
    parts: list[Sentence] = [found.say("{n} steps are under way", n=under_way)] if under_way else []
    if parked:
        parts.append(found.say("{n} steps wait", n=parked))
    return parts or [found.say("No plan is under way")]


SENTENCES: dict[str, Callable[[Row, Found], list[Sentence]]] = {
    "notify": _notify,
    "dispatch": _dispatch,
    "compute": _compute,
    "changes": _changes,
    "actions": _actions,
}
