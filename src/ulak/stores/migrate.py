"""The schema and its versions: a line of numbered files per owner of tables, applied in one transaction.

The spine, the adapters and the rooms each have a line; `schema_version` says how far each one is. An empty database is
filled at once.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

from ulak.errors import Misconfigured

if TYPE_CHECKING:
    import psycopg

FORMAT = 6  # of a SQLite file, in its user_version; 1 to 5 were those of stores before the lines
MOVED = -1  # the format of a SQLite file whose work went elsewhere; see seal.py

_FILE = re.compile(r"^(\d{4})_\w+\.(sqlite|postgres)\.sql$")
_TABLE = re.compile(r"^CREATE TABLE (\w+)", re.MULTILINE)
# A mere start leaves rows in such a table; when a store is moved, the source's take their place.
_REPLACED = re.compile(r"^-- move: replace\nCREATE TABLE (\w+)", re.MULTILINE)
_READ_VERSIONS = "SELECT line, max(version) FROM schema_version GROUP BY line"


class Line(NamedTuple):
    """Migrations of one owner: its name, and the package that has them in its folder `migrations`."""

    name: str
    package: str


SPINE = Line("spine", "ulak.spine")
Lines = Sequence[Line]
ONLY_SPINE: Lines = (SPINE,)
Versions = Mapping[str, int]


class Migration(NamedTuple):
    line: str
    version: int
    script: str

    def __str__(self) -> str:
        return f"{self.line} {self.version}"


def migrations(line: Line, dialect: str) -> list[Migration]:
    """The migrations of a line in a dialect, oldest first; an owner without tables has none."""
    folder = resources.files(line.package) / "migrations"
    entries = folder.iterdir() if folder.is_dir() else ()
    found = [(match, entry) for entry in entries if (match := _FILE.match(entry.name))]
    return sorted(
        Migration(line.name, int(match[1]), entry.read_text()) for match, entry in found if match[2] == dialect
    )


def latest(line: Line, dialect: str) -> int:
    return max((one.version for one in migrations(line, dialect)), default=0)


def tables(lines: Lines, dialect: str) -> list[str]:
    """All that the lines make, in their order."""
    return _named(_TABLE, lines, dialect)


def replaced(lines: Lines, dialect: str) -> list[str]:
    """Those of them that are marked `-- move: replace`."""
    return _named(_REPLACED, lines, dialect)


def _named(pattern: re.Pattern[str], lines: Lines, dialect: str) -> list[str]:
    scripts = (one.script for line in lines for one in migrations(line, dialect))
    return [name for script in scripts for name in pattern.findall(script)]


def judge(versions: Versions, lines: Lines, dialect: str) -> None:
    """Refuse a schema that this release can't work with; the error says how to mend it."""
    judge_unknown(versions, lines, dialect)
    for line in lines:
        present, newest = versions.get(line.name, 0), latest(line, dialect)
        if present < newest:
            raise Misconfigured(
                f"the store's schema of {line.name} is at {present}, this release needs {newest}; run: ulak db migrate"
            )


def judge_unknown(versions: Versions, lines: Lines, dialect: str) -> None:
    """Refuse a schema that no migration of this release leads on from."""
    for line in lines:
        present, newest = versions.get(line.name, 0), latest(line, dialect)
        if present > newest:
            raise Misconfigured(
                f"the store's schema of {line.name} is at {present}, this release knows up to {newest}; "
                "install a newer release"
            )


def _missing(versions: Versions, lines: Lines, dialect: str) -> Iterator[Migration]:
    for line in lines:
        present = versions.get(line.name, 0)
        yield from (one for one in migrations(line, dialect) if one.version > present)


# SQLite


def sqlite_format(connection: sqlite3.Connection) -> int:
    """FORMAT, MOVED, or 0 for an empty file."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def sqlite_versions(connection: sqlite3.Connection) -> Versions:
    """How far each line is; nothing for an empty file."""
    judge_format(sqlite_format(connection))
    return dict(connection.execute(_READ_VERSIONS)) if sqlite_format(connection) else {}


def judge_format(found: int) -> None:
    if found == MOVED:
        raise Misconfigured(
            "this store's work was moved to PostgreSQL; set the setting store to that address. "
            "If the move was interrupted, run the same ulak db move again"
        )
    if found > FORMAT:
        raise Misconfigured(f"the store has format {found}, this release reads {FORMAT}; install a newer release")
    if found not in {0, FORMAT}:
        raise Misconfigured(
            f"the store has format {found}, of before the first release, and nothing leads from there to {FORMAT}; "
            "name another file in the setting store"
        )


def judge_owner(connection: sqlite3.Connection) -> None:
    """Refuse a file that another program made. Many number their schemas too, so the format alone proves nothing."""
    found = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    ours = set(_TABLE.findall(migrations(SPINE, "sqlite")[0].script))
    if (found or sqlite_format(connection)) and not ours <= found:
        (_, _, file), *_ = connection.execute("PRAGMA database_list")
        raise Misconfigured(f"{file} belongs to another program; name a file of its own in the setting store")


def prepare_sqlite(connection: sqlite3.Connection, lines: Lines, now: int) -> None:
    """Fill an empty file; judge one that is not."""
    judge_owner(connection)
    if sqlite_format(connection) == 0:
        migrate_sqlite(connection, lines, now)
    judge(sqlite_versions(connection), lines, "sqlite")


def migrate_sqlite(connection: sqlite3.Connection, lines: Lines, now: int) -> list[Migration]:
    """Apply all missing migrations in one transaction; returns them."""
    judge_owner(connection)
    versions = sqlite_versions(connection)
    judge_unknown(versions, lines, "sqlite")
    missing = list(_missing(versions, lines, "sqlite"))
    if missing:  # a crash or a full disk leaves a new file empty, and not one that would have to be migrated
        scripts = "\n".join(one.script + _noted(one, now) for one in missing)
        connection.executescript(
            "BEGIN IMMEDIATE;\n"
            "CREATE TABLE IF NOT EXISTS schema_version (line TEXT NOT NULL, version INTEGER NOT NULL, "
            "applied_at INTEGER NOT NULL, PRIMARY KEY (line, version)) WITHOUT ROWID;\n"
            f"{scripts}\nPRAGMA user_version = {FORMAT};\nCOMMIT;"
        )
    connection.execute("INSERT INTO meta (name, value) VALUES ('made_at', ?) ON CONFLICT DO NOTHING", (str(now),))
    return missing


def _noted(one: Migration, now: int) -> str:
    return f"\nINSERT INTO schema_version (line, version, applied_at) VALUES ('{one.line}', {one.version}, {now});"


# PostgreSQL

# Two instances that start together must not both fill an empty database.
_SCHEMA_LOCK = 0x756C616B_0003


def postgres_versions(connection: psycopg.Connection[Any]) -> Versions:
    """How far each line is; nothing for a database without one."""
    if connection.execute("SELECT to_regclass('schema_version')").fetchone() == (None,):
        return {}
    return dict(connection.execute(_READ_VERSIONS).fetchall())


def prepare_postgres(connection: psycopg.Connection[Any], lines: Lines, now: int) -> None:
    """Fill an empty database; judge one that is not."""
    if not postgres_versions(connection):
        migrate_postgres(connection, lines, now)
    judge(postgres_versions(connection), lines, "postgres")


def migrate_postgres(connection: psycopg.Connection[Any], lines: Lines, now: int) -> list[Migration]:
    """Apply all missing migrations in one transaction; returns them."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_SCHEMA_LOCK,))
        connection.execute(
            "CREATE TABLE IF NOT EXISTS schema_version (line text NOT NULL, version integer NOT NULL, "
            "applied_at bigint NOT NULL, PRIMARY KEY (line, version))"
        )
        versions = postgres_versions(connection)
        judge_unknown(versions, lines, "postgres")
        missing = list(_missing(versions, lines, "postgres"))
        for one in missing:
            connection.execute(one.script.encode())
            connection.execute("INSERT INTO schema_version VALUES (%s, %s, %s)", (one.line, one.version, now))
        connection.execute("INSERT INTO meta (name, value) VALUES ('made_at', %s) ON CONFLICT DO NOTHING", (str(now),))
    return missing
