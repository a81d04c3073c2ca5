"""The notifier: sends other processes notices of the jobs that a commit here has made ready, and receives theirs.

One thread, one connection, LISTEN and NOTIFY. A lost notice is harmless: every worker looks for itself once a second.
It never sends inside a transaction with jobs, because NOTIFY makes commits wait for one another.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from typing import Any

import msgspec

from ulak import codec
from ulak.clock import SystemClock
from ulak.log import get_logger
from ulak.spine.query import Queries
from ulak.spine.store import AfterCommit
from ulak.stores.postgres.clock import DatabaseClock
from ulak.stores.postgres.connections import Connection, PostgresConnections
from ulak.stores.postgres.notices import News, Notice

log = get_logger("ulak.notifier")
sql = Queries(__package__)

CHANNEL = "ulak"
GAUGES_SECONDS = 5.0

_decoder = msgspec.json.Decoder(Notice)


class Notifier:
    def __init__(self, connections: PostgresConnections, clock: DatabaseClock, heard: Callable[[Notice], None]) -> None:
        self._connections = connections
        self._clock = clock
        self._ending = threading.Event()
        self._heard = heard
        self._news = News(SystemClock())  # notices go out in real milliseconds, even if a test holds the clock
        self._pipe: tuple[int, int] | None = None  # only while it runs: a store that fails to open leaves none
        self._piping = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="ulak-notifier", daemon=True)
        self.alone = False
        self._greeted = False
        self.gauges: dict[str, float] = {}

    def start(self) -> None:
        self._pipe = os.pipe()
        self._thread.start()

    def tell(self, buffers: AfterCommit, free: list[str], *, events: bool = False) -> None:
        """Pass on the changes of a commit."""
        if not self.alone and self._news.add(buffers, free, events=events):
            self._wake()

    def _wake(self) -> None:
        """Wake the thread. Notices from before its start are found at the start."""
        with self._piping:
            if self._pipe is not None:
                os.write(self._pipe[1], b"!")

    def close(self, seconds: float) -> None:
        self._ending.set()
        if self._pipe is None:
            return
        self._wake()
        self._thread.join(seconds)

    # The thread

    def _run(self) -> None:
        try:
            self._connections.serve_patiently(self._ending, self._serve, "notifier")
        finally:
            self._close_pipe()

    def _close_pipe(self) -> None:
        """By the thread that reads from it, at its end: a store that is left behind does not wait for that."""
        with self._piping:
            pipe, self._pipe = self._pipe, None
        for end in pipe or ():
            os.close(end)

    def _serve(self, connection: Connection) -> None:
        # Asked for: behind a pooler the driver knows a made-up number.
        ((own,),) = connection.execute("SELECT pg_backend_pid()").fetchall()
        connection.add_notify_handler(lambda notify: self._hear(own, notify.pid, notify.payload))
        # A word needs no sync: if it is lost with the server, so is every connection that would hear it.
        connection.execute("SET synchronous_commit = off")
        connection.execute(f"LISTEN {CHANNEL}".encode())
        self._notify(connection, codec.encode_text(Notice(hello=True)))
        read_at = 0.0
        while not self._ending.is_set():
            if self._clock.monotonic() >= read_at:
                self._clock.ask(connection)
                self._read_gauges(connection)
                read_at = self._clock.monotonic() + GAUGES_SECONDS
            self._listen(connection, own, min(GAUGES_SECONDS, self._news.due_in_seconds()))
            for payload in self._news.take():
                self._notify(connection, payload)

    def _listen(self, connection: Connection, own: int, seconds: float) -> None:
        """Receive notices until there may be some to send."""
        assert self._pipe is not None
        wakes = self._pipe[0]
        readable = _readable([connection.fileno(), wakes], max(seconds, 0.0))
        if connection.fileno() in readable:
            connection.pgconn.consume_input()
            while (notify := connection.pgconn.notifies()) is not None:
                self._hear(own, notify.be_pid, notify.extra.decode())
        if wakes in readable:
            os.read(wakes, 4096)

    def _hear(self, own: int, pid: int, payload: str) -> None:
        if pid == own:
            return
        try:
            word = _decoder.decode(payload)
        except msgspec.MsgspecError:
            log.warning("word_not_understood", payload=payload[:200])
            return
        if word.hello:
            self.alone, self._greeted = False, True
        self._heard(word)

    def _notify(self, connection: Connection, payload: str) -> None:
        connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, payload))

    def _read_gauges(self, connection: Connection) -> None:
        """Read the store's figures. A process that says hello meanwhile is not counted yet."""
        self._greeted = False
        row: tuple[Any, ...] = connection.execute(sql.read_gauges.postgres.encode()).fetchall()[0]
        self.gauges = dict(zip(("dead_tuples", "oldest_xmin_age", "events_unnumbered", "owners"), row, strict=True))
        self.alone = self.gauges["owners"] <= 1 and not self._greeted


def _readable(descriptors: list[int], seconds: float) -> set[int]:
    """Those with something to read, or at their end. Not by `select`: it takes no descriptor above 1,023."""
    waiting = select.poll()
    for descriptor in descriptors:
        waiting.register(descriptor, select.POLLIN)
    return {descriptor for descriptor, _ in waiting.poll(seconds * 1000)}
