"""Pages of the engine: timers and cron, events, queues, workers, breakers."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from ulak.console.page import Action, Column, ConsolePage, DialogField, Empty, Found, Table

KINDS, WORKERS, BREAKERS = "/api/kinds", "/api/workers", "/api/breakers"
NEWEST_EVENT = "/api/events?limit=1"
EVENTS_PER_PAGE = 50
NOT_JOBS = frozenset({"actions", "dispatch"})  # their own events name no job


def _queues(found: Found) -> str:
    queues = found.items(KINDS)
    paused = [one["kind"] for one in queues if one["paused"]]
    waiting = sum(sum(one["jobs"].values()) for one in queues)
    text = found.say("Queues: {n}, unfinished jobs in them: {m}.", n=len(queues), m=waiting)
    if paused:
        return f"{text} {found.say('Paused: {names}.', names=', '.join(paused))}"
    return f"{text} {found.say('No queue is paused.')}"


def _workers(found: Found) -> str:
    return found.say("Processes that work on this store: {n}.", n=len(found.items(WORKERS)))


def _breakers(found: Found) -> str:
    number = len(found.items(BREAKERS, "breakers"))
    if not number:
        return found.say("Every destination answers; no breaker is open.")
    return found.say("Destinations that are not tried at the moment: {n}. Each is tried again by itself.", n=number)


def _timers(found: Found) -> str:
    return found.say(
        "Cron entries: {n}. Next timers: {m}.",
        n=len(found.items("/api/cron")), m=len(found.items("/api/timers?limit=50")),
    )  # fmt: skip


def _events(found: Found) -> str:
    log = found.of(NEWEST_EVENT) or {"oldest": 1, "newest": 0}
    return found.say(
        "Everything that happened, in commit order, newest first: {n} events are kept.",
        n=max(log["newest"] - log["oldest"] + 1, 0),
    )


def _events_source(found: Found) -> str | None:
    """The newest, unless the page's address names where to begin."""
    log = found.of(NEWEST_EVENT)
    first = 0 if log is None else max(log["newest"] - EVENTS_PER_PAGE, 0)
    return f"/api/events?limit={EVENTS_PER_PAGE}&after={first}"


def _older_events(document: Any, _: Found) -> int | None:
    """Where the page before this one begins."""
    first = document["events"][0]["seq"] if document["events"] else 0
    return max(first - 1 - EVENTS_PER_PAGE, 0) if first > document["oldest"] else None


def _data(event: dict[str, Any], found: Found) -> Any:
    """A bare number is the attempt; of a job that waits, attempt, due time and reason stand together."""
    match event["data"]:
        case [int(failures), int(due)] if event["name"].startswith("breaker."):
            return {"reason": found.say("failures: {n}", n=failures), **({"until": due} if due else {})}
        case int(attempt):
            return found.say("attempt {n}", n=attempt) if attempt else None
        case [int(attempt), int(due), str(reason)]:
            return {"reason": f"{found.say('attempt {n}', n=attempt)}; {found.say.told(reason)}", "until": due}
        case data:
            return data


def _about(event: dict[str, Any], _: Found) -> Markup | None:
    """A job's id leads to it. The number of a task, an offer or a run is an id of the store's own, and has no page."""
    if event["job"] is None:
        return None
    if event["kind"] in NOT_JOBS:
        return Markup("<code>{}</code>").format(event["job"])
    return Markup('<a class="id" href="/console/jobs/{0}">{0}</a>').format(event["job"])


def _busiest_first(document: Any, _: Found) -> list[dict[str, Any]]:
    """Sort kinds that a person may want to act on above the rest, which keeps its order."""
    counted = [{**one, "unfinished": sum(one["jobs"].values())} for one in document["items"]]
    return sorted(counted, key=lambda one: (not one["paused"], -one["unfinished"]))


def _busy(queue: dict[str, Any], found: Found) -> str:
    return ", ".join(f"{found.say.number(n)} {found.say(state)}" for state, n in queue["jobs"].items() if n)


PAGES = (
    ConsolePage(
        "timers",
        "Timers and cron",
        (
            Table(
                "Cron",
                "/api/cron",
                (
                    Column("Name", "name"),
                    Column("Expression", "expression", "code"),
                    Column("Time zone", "timeZone", "soft"),
                    Column("Kind", "kind", "code"),
                    Column("Next", "nextAt", "time"),
                ),
                Empty("No cron entry.", 'ulak.cron("nightly", "0 3 * * *", "report.nightly")'),
                key="name",
                actions=(
                    Action(
                        "Run now",
                        "POST",
                        "/api/cron/{name}/run",
                        title="Run {name} now?",
                        follows="One job is enqueued in addition to its times; the next time stays as planned.",
                        go=True,
                    ),
                ),
            ),
            Table(
                "Next timers",
                "/api/timers?limit=50",
                (
                    Column("Job", "id", "id", "jobs/{}"),
                    Column("Kind", "kind", "code"),
                    Column("Key", "key", "soft"),
                    Column("Due", "dueAt", "time"),
                    Column("Attempts", "attempt", "number"),
                ),
                Empty("No timer is armed.", "ulak notify send IN_APP ayse Merhaba --send-at 2030-01-31T10:30:00Z"),
            ),
        ),
        "engine",
        verdict=_timers,
    ),
    ConsolePage(
        "events",
        "Events",
        (
            Table(
                "Events",
                _events_source,
                (
                    Column("Sequence", "seq", "number"),
                    Column("At", "at", "time"),
                    Column("Event", "name", "code"),
                    Column("About", _about),
                    Column("Kind", "kind", "code"),
                    Column("Data", _data, "told"),
                ),
                Empty("No event yet.", "ulak notify send IN_APP ayse Merhaba"),
                items=lambda document, _: document["events"][::-1],
                key="seq",
                following=_older_events,
                filters=(("after", "From the sequence number"),),
                sources=(NEWEST_EVENT,),
            ),
        ),
        "engine",
        verdict=_events,
    ),
    ConsolePage(
        "kinds",
        "Queues",
        (
            Table(
                "Queues",
                KINDS,
                (
                    Column("Kind", "kind", "code", "jobs?kind={}"),
                    Column(
                        "State",
                        lambda one, _: "paused" if one["paused"] else "ready" if one["handled"] else "unhandled",
                        "state",
                    ),
                    Column("Unfinished", _busy),
                    Column("Oldest", "oldestAt", "time"),
                    Column("At once", "concurrency", "number"),
                ),
                Empty("No handler is declared.", '@ulak.handles("mail")'),
                items=_busiest_first,
                key="kind",
                actions=(
                    Action(
                        "Pause",
                        "PATCH",
                        "/api/kinds/{kind}",
                        body='{"paused": true}',
                        title="Pause {kind} with {unfinished} unfinished jobs?",
                        follows="No process starts its jobs; those that run go on, and new ones are accepted.",
                        risk=True,
                        when=lambda row: not row["paused"],
                    ),
                    Action(
                        "Resume",
                        "PATCH",
                        "/api/kinds/{kind}",
                        body='{"paused": false}',
                        title="Resume {kind}?",
                        go=True,
                        when=lambda row: bool(row["paused"]),
                    ),
                    Action(
                        "Set limit",
                        "PATCH",
                        "/api/kinds/{kind}",
                        body='{"paused": false}',
                        title="How many jobs of {kind} at once?",
                        follows="In each process. Empty is what the handler declares.",
                        entries=(DialogField("concurrency", "Jobs at once", "{concurrency}", "number"),),
                        when=lambda row: bool(row["handled"]) and not row["paused"],
                    ),
                ),
            ),
        ),
        "engine",
        verdict=_queues,
    ),
    ConsolePage(
        "workers",
        "Workers",
        (
            Table(
                "Workers",
                WORKERS,
                (
                    Column("Process", lambda one, found: found.say(one["label"])),
                    Column("Node", "node", "number"),
                    Column("Started", "startedAt", "time"),
                    Column("Lease until", "leaseAt", "time"),
                    Column("Running", "running", "number", "jobs?status=running"),
                    Column("Answers this page", "isThis", "yes"),
                ),
                Empty("No process works.", "ulak worker"),
            ),
        ),
        "engine",
        verdict=_workers,
    ),
    ConsolePage(
        "breakers",
        "Breakers",
        (
            Table(
                "Open breakers",
                BREAKERS,
                (
                    Column("Destination", "destination", "code", "jobs?key={}"),
                    Column("State", "state", "state"),
                    Column("Failures", "failures", "number"),
                    Column("Next try", "untilAt", "time"),
                ),
                Empty("No breaker is open."),
                items="breakers",
                actions=(
                    Action(
                        "Try at once",
                        "POST",
                        "/api/breakers/reset",
                        body='{"id": "{id}"}',
                        title="Close the breaker of {destination}?",
                        follows="Jobs that wait for it are due at once.",
                        go=True,
                    ),
                ),
            ),
        ),
        "engine",
        verdict=_breakers,
    ),
)
