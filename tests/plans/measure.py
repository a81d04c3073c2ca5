"""Statements that were prepared on empty tables, and the rows and blocks that they read when the tables are full."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

import ulak
from ulak.spine.query import Queries, Query
from ulak.stores.postgres.arrays import packers
from ulak.stores.postgres.connections import connect

ROWS = 20_000
FEW = list(range(10_001, 10_041, 4))  # ids from the middle
NEW = list(range(50_001, 50_041, 4))  # ids that no row has
OLD = list(range(1, 11))
N = len(FEW)
EVERY = f"FROM generate_series(1, {ROWS}) AS n"
SOME = "FROM generate_series(1, 1000) AS n"
HANDFUL = "FROM generate_series(1, 50) AS n"

Parameters = dict[str, Any]
_READ = """
SELECT coalesce(sum(pg_stat_get_xact_tuples_returned(oid)), 0)::bigint,
       coalesce(sum(pg_stat_get_xact_blocks_fetched(oid)), 0)::bigint
FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i')
"""


def packages() -> list[str]:
    """Those that have statements for PostgreSQL."""
    root = Path(ulak.__path__[0])
    found = {"ulak." + ".".join(folder.parent.relative_to(root).parts) for folder in root.rglob("queries")}
    return sorted(found - {"ulak.stores.sqlite"})


def statements(package: str) -> Iterator[Query]:
    names = {
        entry.name.split(".")[0]
        for entry in (resources.files(package) / "queries").iterdir()
        if entry.name.endswith(".sql") and not entry.name.endswith(".sqlite.sql")
    }
    for name in sorted(names):
        yield getattr(Queries(package), name)


def rows(**columns: Any) -> Parameters:
    """Columns of arrays: a value that is not a list stands in every row."""
    return {name: value if isinstance(value, list) else [value] * N for name, value in columns.items()}


class Cost(NamedTuple):
    about: int  # rows that it returns, changes or is asked for
    rows: int  # entries of indexes, and rows of tables that were walked over
    blocks: int
    found: int  # rows that it returns or changes


class Prepared:
    """A connection as the store makes it. Each run is rolled back, and the driver does not hear of that.

    A driver that hears of a rollback forgets the statements that it has prepared.
    """

    def __init__(self, address: str, settings: str | bytes) -> None:
        self.connection = connect(address)
        self.connection.execute(settings if isinstance(settings, bytes) else settings.encode())
        self.connection.execute("SET statement_timeout = 0")  # plans are judged by rows, not by the time they take
        self.connection.prepared_max = 1000
        self._cursor = self.connection.cursor(binary=True)

    def run(self, query: Query, parameters: Parameters) -> Cost:
        packed = parameters | {name: pack(parameters[name]) for name, pack in packers(query.postgres).items()}
        self.connection.pgconn.exec_(b"BEGIN")
        try:
            rows, blocks = self._read()
            self._cursor.execute(query.postgres.encode(), packed, prepare=True)
            found = self._cursor.rowcount
            more_rows, more_blocks = self._read()
        finally:
            self.connection.pgconn.exec_(b"ROLLBACK")
        about = max(found, N, *(len(value) for value in parameters.values() if isinstance(value, list)), 0)
        return Cost(about, more_rows - rows, more_blocks - blocks, found)

    def prepare(self, query: Query, parameters: Parameters) -> None:
        """Once is enough: the settings say that a plan is kept, or that none is."""
        try:
            self.run(query, parameters)
        except psycopg.errors.ForeignKeyViolation:
            return  # an insert of one row, whose parent is not there yet

    def close(self) -> None:
        self.connection.close()

    def _read(self) -> tuple[int, int]:
        ((rows, blocks),) = self.connection.execute(_READ, prepare=True).fetchall()
        return rows, blocks


def fill(address: str, statements: list[str]) -> None:
    """By a connection of its own: a reader may not write."""
    with psycopg.connect(address, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def vacuum_by_hand(address: str) -> None:
    """Autovacuum would plan anew by itself."""
    with psycopg.connect(address, autocommit=True) as connection:
        tables = connection.execute(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        )
        for (table,) in tables.fetchall():
            connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)".encode())
