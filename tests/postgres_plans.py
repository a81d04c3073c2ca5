"""Statements that were prepared on empty tables, and the blocks that they read when the tables are full."""

from __future__ import annotations

from typing import Any

import psycopg

from ulak.spine.query import Queries
from ulak.stores.postgres.arrays import packers
from ulak.stores.postgres.connections import connect

RUNS = 6  # more than the server takes to settle on a plan


class Prepared:
    """A connection as the store makes it."""

    def __init__(self, address: str, settings: str | bytes, queries: Queries) -> None:
        self.connection = connect(address)
        self.connection.execute(settings if isinstance(settings, bytes) else settings.encode())
        self.connection.execute("SET statement_timeout = 0")  # plans are judged by blocks, and ANALYZE takes its time
        self.cursor = self.connection.cursor(binary=True)
        self._queries = queries

    def prepare(self, statements: dict[str, dict[str, Any]]) -> None:
        for name, parameters in statements.items():
            for _ in range(RUNS):
                self.run(name, **parameters)

    def run(self, name: str, /, **parameters: Any) -> list[tuple[Any, ...]]:
        query = getattr(self._queries, name)
        for each, pack in packers(query.postgres).items():
            parameters[each] = pack(parameters[each])
        self.cursor.execute(query.postgres.encode(), parameters, prepare=True)
        return self.cursor.fetchall() if self.cursor.description else []

    def measure(self, name: str, /, **parameters: Any) -> tuple[int, int]:
        """Blocks that it read, and rows that it answered."""
        before = self._blocks_read()
        rows = self.run(name, **parameters)
        return self._blocks_read() - before, len(rows)

    def close(self) -> None:
        self.connection.close()

    def _blocks_read(self) -> int:
        self.connection.execute("SELECT pg_stat_force_next_flush()")
        ((number,),) = self.connection.execute(
            "SELECT sum(heap_blks_hit + heap_blks_read + coalesce(idx_blks_hit + idx_blks_read, 0))::bigint"
            " FROM pg_statio_user_tables"
        ).fetchall()
        return int(number)


def vacuum_by_hand(address: str, tables: tuple[str, ...]) -> None:
    """Autovacuum would plan anew by itself."""
    with psycopg.connect(address, autocommit=True) as connection:
        for table in tables:
            connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)".encode())


def fill(address: str, statements: list[str]) -> None:
    """By a connection of its own: a reader may not write, and has a limit of time."""
    with psycopg.connect(address, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())
        connection.execute("SELECT pg_stat_force_next_flush()")  # or what it read is counted later
