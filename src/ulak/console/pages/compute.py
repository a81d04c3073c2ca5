"""Pages of compute: tasks and what the engine does."""

from __future__ import annotations

from ulak.console.page import Column, ConsolePage, FactsView, TableView

PAGES = (
    ConsolePage(
        "compute",
        "Compute",
        (
            TableView(
                "Tasks",
                "/api/jobs?kind=compute.run.cpu",
                (
                    Column("Job", "id", "id", "jobs/{}"),
                    Column("Kind", "kind", "code"),
                    Column("State", "status", "state"),
                    Column("Attempts", "attempt", "number"),
                    Column("Accepted at", "acceptedAt", "time"),
                    Column("Settled at", "settledAt", "time"),
                ),
                items="jobs",
                empty="ulak compute submit script.py",
                following="before",
                after="before",
            ),
            FactsView("Engine", "/api/compute/stats", (("Detail", "metrics", "json"), ("Status", "status", "json"))),
        ),
        "capabilities",
    ),
)
