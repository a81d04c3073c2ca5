"""Pages of the system: keys, the store, what was done by whom."""

from __future__ import annotations

from ulak.console.page import Action, Column, ConsolePage, DialogField, Empty, FactList, Found, Table

STORE = "/api/db"


def _store(found: Found) -> str:
    store = found.of(STORE)
    if store is None:
        return ""
    if store["differences"]:
        return found.say("Some accepted jobs are not accounted for: run ulak db check.")
    return found.say("Everything that was accepted is accounted for.")


PAGES = (
    ConsolePage(
        "keys",
        "Keys",
        (
            Table(
                "Keys",
                "/api/keys",
                (
                    Column("Name", "name"),
                    Column("Key", "id", "code"),
                    Column("Scopes", "scopes"),
                    Column("Made", "madeAt", "time"),
                    Column("Revoked", "revokedAt", "time"),
                ),
                Empty("No key: only this machine may come in.", "ulak keys create ops --scope admin"),
                items="keys",
                bulk=(),
                actions=(
                    Action(
                        "Revoke",
                        "DELETE",
                        "/api/keys/{id}",
                        title="Revoke 1 key, {name}?",
                        follows="Whoever uses it is locked out within seconds. This can’t be undone.",
                        risk=True,
                        way_out="Keep it",
                        when=lambda row: not row.get("revokedAt"),
                    ),
                ),
            ),
        ),
        "system",
        verdict=lambda found: found.say(
            "Who may come in, and with which scopes. A key is shown once, when it is made."
        ),
    ),
    ConsolePage(
        "store",
        "Store",
        (
            FactList(
                "Store",
                STORE,
                (
                    Column("Address", "store", "code"),
                    Column("Identity since a restore", "storeId", "code"),
                    Column("Unfinished jobs", "live", "number"),
                    Column("Held by a restore", "held", "number"),
                    Column("Not accounted for", "differences", "json"),
                    Column("Warnings", "warnings"),
                ),
                span="c12",
                actions=(
                    Action(
                        "Back up",
                        "POST",
                        "/api/db/backup",
                        body="{}",
                        title="Back up the store now?",
                        follows="A copy is written into the folder backups beside it; work goes on meanwhile.",
                        go=True,
                        entries=(DialogField("name", "File name; empty makes one"),),
                        when=lambda store: store["store"].startswith("sqlite:"),
                    ),
                    Action(
                        "Let {held} jobs go",
                        "POST",
                        "/api/db/resume",
                        title="Let {held} held jobs go?",
                        follows="A restore holds them, since they may have run elsewhere. Those that are due run now.",
                        risk=True,
                        when=lambda store: bool(store["held"]),
                    ),
                ),
            ),
        ),
        "system",
        verdict=_store,
    ),
    ConsolePage(
        "audit",
        "Audit",
        (
            Table(
                "Audit",
                "/api/audit?limit=50",
                (
                    Column("At", "at", "time"),
                    Column("Who", "who"),
                    Column("What", "verb", "code"),
                    Column("To what", "object"),
                    Column("Detail", "detail", "json"),
                ),
                Empty("Nobody has done anything yet.", "ulak keys create ops --scope admin"),
                key="seq",
                filters=(("who", "Who"), ("verb", "What"), ("object", "To what")),
            ),
        ),
        "system",
        verdict=lambda found: found.say("Who did what, each line sealed with the one before it."),
    ),
)
