"""Reads apart from the writers: a small pool of read-only connections, each statement with a deadline."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import psycopg
from psycopg import Cursor

from ulak.clock import Clock
from ulak.spine.store import Tx
from ulak.stores.postgres.connections import Connection, PostgresConnections, hang_up
from ulak.stores.postgres.credits import Credits
from ulak.stores.postgres.floors import Floors
from ulak.stores.postgres.owner import Owner
from ulak.stores.postgres.session import translate
from ulak.stores.postgres.tx import PostgresTx
from ulak.stores.writer.read_pool import READ_SECONDS, ReadPool

R = TypeVar("R")

# A plan is made for each read, because most filters are optional, and along indexes, because the statistics may be of
# a time when the table was empty: a search took 160 ms without this, and 9 with it.
READER_SETTINGS = f"""
SET statement_timeout = {round(READ_SECONDS * 1000)}; SET jit = off; SET plan_cache_mode = force_custom_plan;
SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off
""".encode()


class Reader:
    def __init__(self, connections: PostgresConnections, clock: Clock, capacity: Credits, owner: Owner) -> None:
        self._connections = connections
        self._clock = clock
        self._credits = capacity
        self._owner = owner
        self._pool = ReadPool()
        self._own = threading.local()
        self._idle: set[Connection] = set()
        self._closed = False

    async def read(self, work: Callable[[Tx], R]) -> R:
        wire: list[Connection] = []  # the connection that it waits on: a late read must not keep the thread from others
        return await self._pool.run(lambda: self._read(work, wire), late=lambda: hang_up(wire[-1]) if wire else None)

    async def close(self, seconds: float) -> bool:
        self._closed = True
        ended = await self._pool.close(seconds)
        for connection in self._idle:
            connection.close()
        return ended

    def _read(self, work: Callable[[Tx], R], wire: list[Connection]) -> R:
        """Run a read, and try it again on a new connection if the old one was lost since the last time."""
        try:
            known: Connection | None = getattr(self._own, "connection", None)
            if known is not None:
                wire.append(known)
                try:
                    return self._read_on(known, work)
                except psycopg.OperationalError:
                    if not known.broken:
                        raise
            return self._read_on(self._connect(wire), work)
        except psycopg.Error as error:
            raise translate(error) from error

    def _connect(self, wire: list[Connection]) -> Connection:
        connection = self._own.connection = self._connections.connect()
        wire.append(connection)
        connection.execute(READER_SETTINGS)
        return connection

    def _read_on(self, connection: Connection, work: Callable[[Tx], R]) -> R:
        self._idle.discard(connection)
        try:
            return self._read_in_transaction(connection.cursor(binary=True), work)
        finally:
            if self._closed:
                connection.close()
            elif not connection.broken:
                self._idle.add(connection)

    def _read_in_transaction(self, cursor: Cursor[tuple[Any, ...]], work: Callable[[Tx], R]) -> R:
        cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            tx = PostgresTx(cursor, self._clock.now(), self._owner.ids, self._credits, Floors())
            tx.begun = True
            return work(tx)
        finally:
            if not cursor.connection.broken:
                cursor.execute("COMMIT")  # after a rollback the driver makes the server drop its prepared statements
