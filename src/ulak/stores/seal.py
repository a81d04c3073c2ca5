"""The mark on a SQLite store whose work was moved elsewhere: opening it is refused, so that no job runs twice.

It is set just before the other side commits. After a crash between the two, the token on the other side says where the
work is.
"""

from __future__ import annotations

import sqlite3

import msgspec

from ulak.stores.migrate import FORMAT, MOVED


class Seal(msgspec.Struct, frozen=True):
    """`place` is where the work goes; `arrived` says that it is known to be there."""

    token: str
    place: str
    arrived: bool = False


def read_seal(connection: sqlite3.Connection) -> Seal | None:
    row = connection.execute("SELECT value FROM meta WHERE name = 'move'").fetchone()
    return None if row is None else msgspec.json.decode(row[0], type=Seal)


def set_seal(connection: sqlite3.Connection, seal: Seal) -> None:
    value = msgspec.json.encode(seal).decode()
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT OR REPLACE INTO meta (name, value) VALUES ('move', ?)", (value,))
        connection.execute(f"PRAGMA user_version = {MOVED}")


def lift_seal(connection: sqlite3.Connection) -> None:
    """The work is still here. Only a store with the latest schema is ever sealed."""
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM meta WHERE name = 'move'")
        connection.execute(f"PRAGMA user_version = {FORMAT}")
