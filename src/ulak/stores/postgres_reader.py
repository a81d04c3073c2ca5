"""Reading beside the writers: a small pool of read-only connections, each statement with a deadline."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import psycopg

from ulak.clock import Clock
from ulak.spine.store import Tx
from ulak.stores.postgres_credits import Credits
from ulak.stores.postgres_floors import Floors
from ulak.stores.postgres_member import Member
from ulak.stores.postgres_session import Connection, connect, translate
from ulak.stores.postgres_tx import PostgresTx

R = TypeVar("R")

CONNECTIONS = 2
READ_SECONDS = 2.0


class Reader:
    def __init__(self, uri: str, clock: Clock, ledger: Credits, member: Member) -> None:
        self._uri = uri
        self._clock = clock
        self._credits = ledger
        self._member = member
        self._pool = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="ulak-read")
        self._own = threading.local()
        self._open: set[Connection] = set()

    async def read(self, work: Callable[[Tx], R]) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._read, work)

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        for connection in self._open:
            connection.close()

    def _read(self, work: Callable[[Tx], R]) -> R:
        """What only reads may be tried again: on a new connection, if the old one was lost since the last time."""
        try:
            known: Connection | None = getattr(self._own, "connection", None)
            if known is not None:
                try:
                    return self._read_on(known, work)
                except psycopg.OperationalError:
                    if not known.broken:
                        raise
                    self._open.discard(known)
            return self._read_on(self._connect(), work)
        except psycopg.Error as error:
            raise translate(error) from error

    def _connect(self) -> Connection:
        connection = self._own.connection = connect(self._uri)
        self._open.add(connection)
        connection.execute(f"SET statement_timeout = {round(READ_SECONDS * 1000)}; SET jit = off".encode())
        return connection

    def _read_on(self, connection: Connection, work: Callable[[Tx], R]) -> R:
        cursor = connection.cursor(binary=True)
        cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            tx = PostgresTx(cursor, self._clock.now(), self._member.ids, self._credits, Floors())
            tx.begun = True
            return work(tx)
        finally:
            if not connection.broken:
                cursor.execute("ROLLBACK")
