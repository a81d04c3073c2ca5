"""Pages of the engine: jobs, dead letters, timers and cron, events, queues, workers, breakers."""

from __future__ import annotations

from ulak.console.page import Action, Column, ConsolePage, TableView

_LIVE = frozenset({"ready", "running", "deferred", "behind", "suspect"})

JOBS = TableView(
    "Jobs",
    "/api/jobs",
    (
        Column("Job", "id", "id", "jobs/{}"),
        Column("Kind", "kind", "code"),
        Column("Key", "key"),
        Column("State", "status", "state"),
        Column("Priority", "priority"),
        Column("Attempts", "attempt", "number"),
        Column("Accepted at", "acceptedAt", "time"),
        Column("Settled at", "settledAt", "time"),
    ),
    items="jobs",
    empty="ulak notify send IN_APP ayse Merhaba",
    filters=("kind", "status"),
    following="before",
    after="before",
    actions=(
        Action(
            "Cancel",
            "POST",
            "/api/jobs/{id}/cancel",
            confirm="Cancel this job?",
            harmful=True,
            when=lambda row: row["status"] in _LIVE,
        ),
    ),
)

DEAD = TableView(
    "Dead letters",
    "/api/dead",
    (
        Column("Job", "id", "id", "jobs/{}"),
        Column("Kind", "kind", "code"),
        Column("Class", "errorClass"),
        Column("Code", "code", "code"),
        Column("Cause", "cause"),
        Column("Attempts", "attempt", "number"),
        Column("Died at", "diedAt", "time"),
    ),
    items="dead",
    filters=("kind", "errorClass", "code", "contains"),
    following="after",
    actions=(
        Action(
            "Send again", "POST", "/api/dead/redrive", body='{"ids": ["{id}"]}', confirm="Send this dead letter again?"
        ),
        Action("Drop", "DELETE", "/api/dead/{id}", confirm="Drop this dead letter for good?", harmful=True),
    ),
)

PAGES = (
    ConsolePage("jobs", "Jobs", (JOBS,), "engine"),
    ConsolePage(
        "jobs/{id}",
        "Job",
        detail="/api/jobs/{id}",
        actions=(
            Action(
                "Cancel",
                "POST",
                "/api/jobs/{id}/cancel",
                confirm="Cancel this job?",
                harmful=True,
                when=lambda row: row.get("status") in _LIVE,
            ),
            Action(
                "Send again",
                "POST",
                "/api/dead/redrive",
                body='{"ids": ["{id}"]}',
                confirm="Send this dead letter again?",
                when=lambda row: row.get("status") == "dead",
            ),
        ),
    ),
    ConsolePage("dead", "Dead letters", (DEAD,), "engine"),
    ConsolePage(
        "timers",
        "Timers and cron",
        (
            TableView(
                "Timers and cron",
                "/api/cron",
                (
                    Column("Name", "name"),
                    Column("Expression", "expression", "code"),
                    Column("Time zone", "timeZone"),
                    Column("Kind", "kind", "code"),
                    Column("Next at", "nextAt", "time"),
                ),
                key="name",
                empty="ulak.cron(…) in your app",
                actions=(
                    Action("Run now", "POST", "/api/cron/{name}/run", confirm="Run this entry now, beside its times?"),
                ),
            ),
            TableView(
                "Deferred",
                "/api/timers",
                (
                    Column("Job", "id", "id", "jobs/{}"),
                    Column("Kind", "kind", "code"),
                    Column("Key", "key"),
                    Column("Due at", "dueAt", "time"),
                    Column("Attempts", "attempt", "number"),
                ),
            ),
        ),
        "engine",
    ),
    ConsolePage(
        "events",
        "Events",
        (
            TableView(
                "Events",
                "/api/events",
                (
                    Column("Sequence", "seq", "number"),
                    Column("At", "at", "time"),
                    Column("Event", "name", "code"),
                    Column("Job", "job", "id", "jobs/{}"),
                    Column("Kind", "kind", "code"),
                ),
                items="events",
                key="seq",
                following="after",
                filters=(),
            ),
        ),
        "engine",
    ),
    ConsolePage(
        "kinds",
        "Queues",
        (
            TableView(
                "Queues",
                "/api/kinds",
                (
                    Column("Kind", "kind", "code"),
                    Column("Paused", "paused", "yes"),
                    Column("Concurrency", "concurrency", "number"),
                    Column("Jobs", "jobs", "json"),
                    Column("Oldest at", "oldestAt", "time"),
                ),
                key="kind",
                actions=(
                    Action(
                        "Pause",
                        "PATCH",
                        "/api/kinds/{kind}",
                        body='{"paused": true}',
                        confirm="Pause this queue on all instances?",
                        harmful=True,
                        when=lambda row: not row["paused"],
                    ),
                    Action(
                        "Resume",
                        "PATCH",
                        "/api/kinds/{kind}",
                        body='{"paused": false}',
                        confirm="Resume this queue?",
                        when=lambda row: bool(row["paused"]),
                    ),
                ),
            ),
        ),
        "engine",
    ),
    ConsolePage(
        "workers",
        "Workers",
        (
            TableView(
                "Workers",
                "/api/workers",
                (
                    Column("Process", "label"),
                    Column("Node", "node", "number"),
                    Column("Started at", "startedAt", "time"),
                    Column("Lease until", "leaseAt", "time"),
                    Column("This process", "isThis", "yes"),
                    Column("Running", "running", "number"),
                ),
            ),
        ),
        "engine",
    ),
    ConsolePage(
        "breakers",
        "Breakers",
        (
            TableView(
                "Breakers",
                "/api/breakers",
                (
                    Column("Destination", "destination", "code"),
                    Column("State", "state", "state"),
                    Column("Number", "failures", "number"),
                    Column("Until", "untilAt", "time"),
                ),
                items="breakers",
                key="id",
                actions=(
                    Action(
                        "Reset",
                        "POST",
                        "/api/breakers/reset",
                        body='{"id": "{id}"}',
                        confirm="Close this breaker and try at once?",
                    ),
                ),
            ),
        ),
        "engine",
    ),
)
