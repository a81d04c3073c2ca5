"""Pages of dispatch: helpers and tasks, on a map and in lists; one task with its offers; fairness."""

from __future__ import annotations

from ulak.console.page import Action, Column, ConsolePage, FactsView, TableView

_OPEN = frozenset({"SEARCHING", "OFFERED", "ASSIGNED"})
PAGES = (
    ConsolePage(
        "dispatch",
        "Dispatch",
        (
            TableView(
                "Tasks",
                "/tasks",
                (
                    Column("Job", "id", "id", "tasks/{}"),
                    Column("State", "status", "state"),
                    Column("Category", "category"),
                    Column("Requester", "requesterId"),
                    Column("Helper", "helperId"),
                    Column("Offers", "pendingAssignments", "json"),
                    Column("Accepted at", "createdAt", "time"),
                ),
                filters=("status", "helperId", "requesterId"),
                empty="ulak dispatch demo",
                actions=(
                    Action(
                        "Cancel",
                        "PUT",
                        "/tasks/{id}/cancel",
                        body='{"reason": "cancelled in the console"}',
                        confirm="Cancel this task? Its open offers are withdrawn.",
                        harmful=True,
                        when=lambda row: row["status"] in _OPEN,
                    ),
                ),
            ),
            TableView(
                "Helpers",
                "/helpers",
                (
                    Column("Helper", "id", "code"),
                    Column("Name", "name"),
                    Column("State", "status", "state"),
                    Column("Latitude", "latitude", "number"),
                    Column("Longitude", "longitude", "number"),
                    Column("Completed this month", "completedThisMonth", "number"),
                    Column("Timeouts in a row", "timeoutsInRow", "number"),
                    Column("Position at", "positionAt", "time"),
                ),
                empty="ulak dispatch demo",
            ),
            FactsView(
                "Fairness",
                "/api/dispatch/fairness",
                (
                    ("Helpers", "helpers", "number"),
                    ("Gini", "gini", "number"),
                    ("Longest wait", "longestWaitSeconds", "number"),
                    ("Silent share", "silentShare", "percent"),
                    ("Acceptance rate", "acceptanceRate", "percent"),
                    ("Overdue", "overdueSeconds", "number"),
                ),
            ),
        ),
        "capabilities",
        drawing="dispatch.html",
    ),
    ConsolePage("tasks/{id}", "Tasks", detail="/tasks/{id}"),
)
