"""SQLite: one file, one process, one writing connection, group commit at synchronous=FULL.

`memory:` is such a file that is not kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from ulak.clock import Clock, SteadyClock
from ulak.errors import Misconfigured, Unavailable
from ulak.ids import Ids
from ulak.spine.capacity import Capacity
from ulak.spine.job import Row
from ulak.spine.query import Queries
from ulak.spine.store import LAST_SECONDS, AfterCommit, CommitListener, Tx, Verb, WriterQueue
from ulak.stores.migrate import ONLY_SPINE, Lines, prepare_sqlite
from ulak.stores.sqlite.ballast import Ballast
from ulak.stores.sqlite.file_lock import FileLock
from ulak.stores.sqlite.private_file import discard, make_private
from ulak.stores.sqlite.reader import Readers, keep_off_foreign, open_reader
from ulak.stores.sqlite.session import SqliteSession, open_writer, opening, translate
from ulak.stores.sqlite.tx import SqliteTx
from ulak.stores.writer.writer import RUN_UNIT, Writer

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")

sql = Queries("ulak.spine")


class SqliteStore:
    multi_process = False
    slice_seconds = 0.001  # one writer for all: at 5 ms a job beside a first sync took 9.6 ms, now 1.8 (changes_beside)

    def __init__(
        self,
        path: str | None,
        clock: Clock,
        capacity: Callable[[str], int],
        ballast_mb: int = 0,
        min_free_mb: int = 0,
        live: Callable[[str], int] | None = None,
        lines: Lines = ONLY_SPINE,
    ) -> None:
        self._lines = lines
        self._temporary = tempfile.mkdtemp(prefix="ulak-memory-") if path is None else None
        # The file itself, whatever link leads to it: its lock and other neighbours must be the same for all names.
        self.path = Path(os.path.realpath(path or f"{self._temporary}/ulak.db"))
        self.name = "memory:" if path is None else f"sqlite:///{path}"
        self._clock = SteadyClock(clock)
        self.clock: Clock = self._clock
        self.ids = Ids()
        self.owner = 0
        self.capacity = Capacity(capacity, live)
        self.ballast = Ballast(self.path, 0 if self._temporary else ballast_mb, min_free_mb)
        self._lock = FileLock(self.path.with_name(self.path.name + ".lock"))
        self._readers = Readers(
            self.path, clock, lambda connection: SqliteTx(connection, self.clock.now(), self.ids, self.capacity)
        )
        self._writer: Writer | None = None
        self._listener: CommitListener | None = None
        self._failures_seen = 0

    def _connect(self) -> sqlite3.Connection:
        return open_writer(self.path, "OFF" if self._temporary else "FULL")

    async def open(self, listener: CommitListener) -> None:
        self._listener = listener
        try:
            await asyncio.to_thread(keep_off_foreign, self.path)
            self._check_folder()
            self._lock.take()
            with opening(self.path):
                session = await asyncio.to_thread(self._prepare)
        except BaseException:
            self._let_go()
            raise
        loop = asyncio.get_running_loop()
        self._writer = Writer("ulak-writer", session, list(WriterQueue), loop, self._committed, listener.lost)
        self._writer.start()

    def _check_folder(self) -> None:
        """A folder that is not there is a typing error more often than a wish."""
        folder = self.path.parent
        if not folder.is_dir():
            raise Misconfigured(f"there is no folder {folder} for {self.path.name}; make it or check the setting store")

    def _prepare(self) -> SqliteSession:
        connection = self._connect()
        try:
            prepare_sqlite(connection, self._lines, self.clock.now())
            self.capacity.load(connection.execute(sql.count_live.sqlite), connection.execute(sql.count_parked.sqlite))
        finally:
            connection.close()
        session = SqliteSession(self._connect, self.clock, self.capacity, self._let_go)
        self._clock.not_before(session.last_now)
        self.ids = session.ids
        self.owner = self.ids.take(self.clock.now())
        self.ballast.load()
        self.capacity.closed_because = self.ballast.shortage()
        return session

    def _committed(self, buffers: AfterCommit) -> None:
        if self._listener is not None:
            self._listener.committed(buffers, buffers.freed())

    async def close(self, seconds: float = LAST_SECONDS) -> bool:
        writer, self._writer = self._writer, None
        if writer is None:
            self._let_go()
            return True
        try:
            async with asyncio.timeout(seconds):
                # Readers first: the writer, closing last, empties the WAL.
                readers_ended = await self._readers.close(seconds / 2)
                await writer.close()
                return readers_ended
        except TimeoutError:
            writer.give_up()
            return False

    def _let_go(self) -> None:
        """When the writer has ended, and not before: a commit in which it is stuck may still reach the file."""
        self._lock.release()
        if self._temporary:
            shutil.rmtree(self._temporary, ignore_errors=True)

    async def warnings(self) -> list[str]:
        return []

    def stalled_seconds(self) -> float:
        return 0.0 if self._writer is None else self._writer.stalled_seconds()

    def submit(self, verb: Verb[T, R], item: T) -> Awaitable[R]:
        if self._writer is None:
            raise Unavailable("the store is not open; use it inside `async with`")
        return self._writer.submit(verb, item)

    def piggyback(self, verb: Verb[T, R], item: T) -> asyncio.Future[R | None]:
        if self._writer is None:
            raise Unavailable("the store is not open; use it inside `async with`")
        return self._writer.piggyback(verb, item)

    def withdraw_piggyback(self) -> None:
        if self._writer is not None:
            self._writer.withdraw_piggyback()

    async def write(self, unit: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        answer: R = await self.submit(RUN_UNIT, lambda tx: unit(tx, *args, **kwargs))
        return answer

    async def read(self, work: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._readers.read(lambda tx: work(tx, *args, **kwargs))

    async def enqueue_in(self, connection: Any, rows: Sequence[Row]) -> list[int]:
        raise Misconfigured(
            "a SQLite store has one writer, so a job can't join a transaction of your own connection; "
            "run your statements in Ulak's transaction instead: await ulak.write(unit)"
        )

    async def backup(self, path: str) -> None:
        await asyncio.to_thread(self._backup, Path(path))

    def _backup(self, target: Path) -> None:
        make_private(target)
        try:
            with contextlib.closing(open_reader(self.path)) as connection:
                connection.execute("VACUUM INTO ?", (str(target),))
        except sqlite3.Error as error:
            discard(target)
            raise translate(error) from error

    async def maintain(self) -> None:
        """Refuse new work while the disk is short; after a failed write give the ballast up for the results."""
        self.capacity.closed_because = self.ballast.shortage()
        if self._writer is not None and self._writer.failures != self._failures_seen:
            self._failures_seen = self._writer.failures
            self.ballast.drop()

    def gauges(self) -> dict[str, float]:
        wal = self.path.with_name(self.path.name + "-wal")
        return {
            "file_bytes": self.path.stat().st_size if self.path.exists() else 0,
            "wal_bytes": wal.stat().st_size if wal.exists() else 0,
            "commits_total": self._writer.commits if self._writer else 0,
            "reruns_total": self._writer.reruns if self._writer else 0,
            "handover_depth": self._writer.waiting() if self._writer else 0,
            "stalled_seconds": self.stalled_seconds(),
        }
