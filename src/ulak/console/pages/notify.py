"""Pages of notify: messages and webhook endpoints."""

from __future__ import annotations

from ulak.console.page import Action, Column, ConsolePage, TableView

PAGES = (
    ConsolePage(
        "notify",
        "Notify",
        (
            TableView(
                "Messages",
                "/api/notifications",
                (
                    Column("Job", "id", "id", "notifications/{}"),
                    Column("Type", "notificationType"),
                    Column("State", "status", "state"),
                    Column("Recipient", "recipient"),
                    Column("Attempts", "attempts", "number"),
                    Column("Accepted at", "createdAt", "time"),
                    Column("Settled at", "settledAt", "time"),
                ),
                filters=("notificationType", "status", "reference"),
                following="nextBefore",
                after="before",
                empty="ulak notify send IN_APP ayse Merhaba",
                actions=(
                    Action(
                        "Send again",
                        "POST",
                        "/api/notifications/{id}/resend",
                        confirm="Send this message again, under its own id?",
                        when=lambda row: row["status"] in {"FAILED", "DEAD", "HELD"},
                    ),
                    Action(
                        "Cancel",
                        "POST",
                        "/api/notifications/{id}/cancel",
                        confirm="Cancel this message?",
                        harmful=True,
                        when=lambda row: row["status"] in {"WAITING", "SCHEDULED", "RETRYING"},
                    ),
                ),
            ),
            TableView(
                "Endpoints",
                "/api/webhook-endpoints",
                (
                    Column("Destination", "url", "code"),
                    Column("Secrets", "secrets", "number"),
                    Column("Disabled at", "disabledAt", "time"),
                    Column("Reason", "reason"),
                ),
                items="",
                key="url",
                empty="ulak notify endpoints register URL",
            ),
        ),
        "capabilities",
    ),
    ConsolePage("notifications/{id}", "Messages", detail="/api/notifications/{id}"),
)
