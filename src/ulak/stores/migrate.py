"""The schema and its versions: numbered files, applied in one transaction. An empty database is filled at once."""

from __future__ import annotations

import re
import sqlite3
from importlib import resources
from typing import TYPE_CHECKING, Any

from ulak.errors import Misconfigured

if TYPE_CHECKING:
    import psycopg

MOVED = -1  # the version of a SQLite file whose work went elsewhere; see seal.py

_FILE = re.compile(r"^(\d{4})_\w+\.(sqlite|postgres)\.sql$")
_TABLE = re.compile(r"^CREATE TABLE (\w+)", re.MULTILINE)


def migrations(dialect: str) -> list[tuple[int, str]]:
    """(version, script) of a dialect, oldest first."""
    folder = resources.files("ulak.stores") / "migrations"
    found = [(match, entry) for entry in folder.iterdir() if (match := _FILE.match(entry.name))]
    return sorted((int(match[1]), entry.read_text()) for match, entry in found if match[2] == dialect)


def latest(dialect: str) -> int:
    return migrations(dialect)[-1][0]


def tables(dialect: str) -> list[str]:
    """All that the migrations make, in their order."""
    return [name for _, script in migrations(dialect) for name in _TABLE.findall(script)]


def judge(version: int, dialect: str) -> None:
    """Refuse a schema that this release can't work with, and say what mends it."""
    judge_unknown(version, dialect)
    if version < latest(dialect):
        raise Misconfigured(
            f"the store has schema {version}, this release needs {latest(dialect)}; run: ulak db migrate"
        )


def judge_unknown(version: int, dialect: str) -> None:
    """Refuse a schema that no migration of this release leads on from."""
    newest = latest(dialect)
    if version == MOVED:
        raise Misconfigured(
            "this store's work was moved to PostgreSQL; set the setting store to that address. "
            "If the move was interrupted, run the same ulak db move again"
        )
    if version > newest:
        raise Misconfigured(
            f"the store has schema {version}, this release knows up to {newest}; install a newer release"
        )


def sqlite_version(connection: sqlite3.Connection) -> int:
    """The schema's version; 0 for an empty file."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def judge_owner(connection: sqlite3.Connection) -> None:
    """Refuse a file that another program made. Many number their schemas too, so the version alone tells nothing."""
    found = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    ours = set(_TABLE.findall(migrations("sqlite")[0][1]))
    if (found or sqlite_version(connection)) and not ours <= found:
        (_, _, file), *_ = connection.execute("PRAGMA database_list")
        raise Misconfigured(f"{file} belongs to another program; name a file of its own in the setting store")


def prepare_sqlite(connection: sqlite3.Connection, now: int) -> None:
    """Fill an empty file; judge one that is not."""
    judge_owner(connection)
    if sqlite_version(connection) == 0:
        migrate_sqlite(connection, now)
    judge(sqlite_version(connection), "sqlite")


def migrate_sqlite(connection: sqlite3.Connection, now: int) -> list[int]:
    """Apply what is missing, all in one transaction; answers the versions that were applied."""
    judge_owner(connection)
    present = sqlite_version(connection)
    judge_unknown(present, "sqlite")
    missing = [(version, script) for version, script in migrations("sqlite") if version > present]
    if missing:  # a crash or a full disk leaves a new file empty, and not one that would have to be migrated
        scripts = "\n".join(script for _, script in missing)
        connection.executescript(f"BEGIN IMMEDIATE;\n{scripts}\nPRAGMA user_version = {missing[-1][0]};\nCOMMIT;")
    connection.execute("INSERT INTO meta (name, value) VALUES ('made_at', ?) ON CONFLICT DO NOTHING", (str(now),))
    return [version for version, _ in missing]


# Two instances that start together must not both fill an empty database.
_SCHEMA_LOCK = 0x756C616B_0003


def postgres_version(connection: psycopg.Connection[Any]) -> int:
    """The schema's version; 0 for a database without one."""
    if connection.execute("SELECT to_regclass('schema_version')").fetchone() == (None,):
        return 0
    row = connection.execute("SELECT max(version) FROM schema_version").fetchone()
    return int(row[0] or 0) if row else 0


def prepare_postgres(connection: psycopg.Connection[Any], now: int) -> None:
    """Fill an empty database; judge one that is not."""
    if postgres_version(connection) == 0:
        migrate_postgres(connection, now)
    judge(postgres_version(connection), "postgres")


def migrate_postgres(connection: psycopg.Connection[Any], now: int) -> list[int]:
    """Apply what is missing, all in one transaction; answers the versions that were applied."""
    applied = []
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_SCHEMA_LOCK,))
        connection.execute(
            "CREATE TABLE IF NOT EXISTS schema_version (version integer PRIMARY KEY, applied_at bigint NOT NULL)"
        )
        present = postgres_version(connection)
        judge_unknown(present, "postgres")
        for version, script in migrations("postgres"):
            if version > present:
                connection.execute(script.encode())
                connection.execute("INSERT INTO schema_version (version, applied_at) VALUES (%s, %s)", (version, now))
                applied.append(version)
        connection.execute("INSERT INTO meta (name, value) VALUES ('made_at', %s) ON CONFLICT DO NOTHING", (str(now),))
    return applied
