"""The schema and its versions: numbered files, applied in order, each in one transaction. An empty database is filled at once."""

from __future__ import annotations

import re
import sqlite3
from importlib import resources

from ulak.errors import Misconfigured

_FILE = re.compile(r"^(\d{4})_\w+\.(sqlite|postgres)\.sql$")


def migrations(dialect: str) -> list[tuple[int, str]]:
    """(version, script) of a dialect, oldest first."""
    folder = resources.files("ulak.stores") / "migrations"
    found = [(match, entry) for entry in folder.iterdir() if (match := _FILE.match(entry.name))]
    return sorted((int(match[1]), entry.read_text()) for match, entry in found if match[2] == dialect)


def latest(dialect: str) -> int:
    return migrations(dialect)[-1][0]


def judge(version: int, dialect: str) -> None:
    """Refuse a schema that this release can't work with, and say what mends it."""
    newest = latest(dialect)
    if version > newest:
        raise Misconfigured(f"the store has schema {version}, this release knows up to {newest}; install a newer release")
    if version < newest:
        raise Misconfigured(f"the store has schema {version}, this release needs {newest}; run: ulak db migrate")


def sqlite_version(connection: sqlite3.Connection) -> int:
    """The schema's version; 0 for an empty file."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def prepare_sqlite(connection: sqlite3.Connection, now: int) -> None:
    """Fill an empty file; judge one that is not."""
    if sqlite_version(connection) == 0:
        migrate_sqlite(connection, now)
    judge(sqlite_version(connection), "sqlite")


def migrate_sqlite(connection: sqlite3.Connection, now: int) -> list[int]:
    """Apply what is missing; answers the versions that were applied."""
    present = sqlite_version(connection)
    applied = []
    for version, script in migrations("sqlite"):
        if version > present:
            connection.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version = {version};\nCOMMIT;")
            applied.append(version)
    connection.execute("INSERT INTO meta (name, value) VALUES ('made_at', ?) ON CONFLICT DO NOTHING", (str(now),))
    return applied
