"""Pages of the system: keys, the store, what was done by whom."""

from __future__ import annotations

from ulak.console.page import Action, Column, ConsolePage, FactsView, TableView

PAGES = (
    ConsolePage(
        "keys",
        "Keys",
        (
            TableView(
                "Keys",
                "/api/keys",
                (
                    Column("Name", "name"),
                    Column("Key", "id", "code"),
                    Column("Scopes", "scopes"),
                    Column("Made at", "madeAt", "time"),
                    Column("Revoked at", "revokedAt", "time"),
                ),
                items="keys",
                empty="ulak keys create ops --scope admin",
                actions=(
                    Action(
                        "Revoke",
                        "DELETE",
                        "/api/keys/{id}",
                        confirm="Revoke this key? Whoever has it is out within seconds.",
                        harmful=True,
                        when=lambda row: not row.get("revokedAt"),
                    ),
                ),
            ),
        ),
        "system",
    ),
    ConsolePage(
        "store",
        "Store",
        (
            FactsView(
                "Store",
                "/api/db",
                (
                    ("Store", "store", "text"),
                    ("Name", "storeId", "code"),
                    ("Number", "live", "number"),
                    ("held", "held", "number"),
                    ("Reason", "warnings", "text"),
                ),
            ),
        ),
        "system",
    ),
    ConsolePage(
        "audit",
        "Audit",
        (
            TableView(
                "Audit",
                "/api/audit",
                (
                    Column("At", "at", "time"),
                    Column("Who", "who"),
                    Column("Verb", "verb", "code"),
                    Column("Object", "object"),
                    Column("Detail", "detail", "json"),
                ),
                key="seq",
            ),
        ),
        "system",
    ),
)
