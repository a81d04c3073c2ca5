"""Pages of changes: feeds and syncs; a snapshot that was held back is approved or rejected here."""

from __future__ import annotations

from ulak.console.page import Action, Column, ConsolePage, FactsView, TableView

PAGES = (
    ConsolePage(
        "changes",
        "Changes",
        (
            FactsView("Feeds", "/api/v1/status", (("Feeds", "feeds", "json"),)),
            TableView(
                "Syncs",
                "/api/changes/gib/syncs",
                (
                    Column("Job", "syncId", "code"),
                    Column("Status", "status", "state"),
                    Column("Verdict", "verdict", "state"),
                    Column("Seconds", "seconds", "number"),
                    Column("Error", "error"),
                    Column("Feeds", "feeds", "json"),
                ),
                key="syncId",
                empty="ulak changes sync gib",
                actions=(
                    Action(
                        "Reject",
                        "POST",
                        "/api/changes/gib/syncs/{syncId}/reject",
                        confirm="Drop what this sync held back?",
                        harmful=True,
                        when=lambda row: row.get("verdict") in {"withheld", "quarantined"},
                    ),
                ),
            ),
        ),
        "capabilities",
    ),
)
