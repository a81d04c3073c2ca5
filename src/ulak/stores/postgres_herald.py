"""The herald: tells other processes what a commit here has made ready, and hears from them.

One thread, one connection, LISTEN and NOTIFY. A word that gets lost is harmless: every worker looks for itself once a
second. It never speaks inside a transaction of business, because NOTIFY makes commits wait for one another.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from typing import Any

import msgspec
import psycopg
import structlog

from ulak import codec
from ulak.clock import Clock
from ulak.spine.query import Queries
from ulak.spine.store import Buffers
from ulak.stores.postgres_wires import Connection, Wires
from ulak.stores.session import Fatal

log = structlog.get_logger("ulak.herald")
sql = Queries("ulak.spine")

CHANNEL = "ulak"
PAUSE_SECONDS = 0.01  # between two words of this process
FACTS_SECONDS = 5.0
AFTER_LOSS_SECONDS = 0.1
LEVELS_PER_WORD = 20  # a NOTIFY carries less than 8,000 bytes
IDS_PER_WORD = 200


class Word(msgspec.Struct, array_like=True):
    """What is told: levels with work and their lowest id, the next deadline, jobs to stop, pools with room, marks."""

    ready: list[tuple[str, int, int]] = []
    due_at: int | None = None
    cancelled: list[int] = []
    room: list[str] = []
    behind: bool = False
    events: bool = False
    hello: bool = False


_decoder = msgspec.json.Decoder(Word)


def words(buffers: Buffers, room: list[str], *, events: bool) -> list[str]:
    """A commit's buffers as payloads, each within the limit of a NOTIFY."""
    ready = [(kind, prio, buffers.lowest.get((kind, prio), 0)) for kind, prio in sorted(buffers.ready)]
    first = Word(
        ready[:LEVELS_PER_WORD],
        buffers.due_at,
        buffers.cancelled[:IDS_PER_WORD],
        room[:LEVELS_PER_WORD],
        buffers.behind,
        events,
    )
    rest = [
        Word(ready=ready[start : start + LEVELS_PER_WORD])
        for start in range(LEVELS_PER_WORD, len(ready), LEVELS_PER_WORD)
    ]
    return [codec.encode_text(word) for word in [first, *rest]]


class Herald:
    def __init__(self, wires: Wires, clock: Clock, heard: Callable[[Word], None]) -> None:
        self._wires = wires
        self._clock = clock
        self._ending = threading.Event()
        self._heard = heard
        self._lock = threading.Lock()
        self._pending = Buffers()
        self._pending_room: set[str] = set()
        self._pending_events = False
        self._spoke_at = 0.0
        self._wake_reader, self._wake_writer = os.pipe()
        self._thread = threading.Thread(target=self._run, name="ulak-herald", daemon=True)
        self.alone = False
        self.facts: dict[str, float] = {}

    def start(self) -> None:
        self._thread.start()

    def tell(self, buffers: Buffers, room: list[str], *, events: bool = False) -> None:
        """Pass on what a commit has changed; what comes within a few milliseconds goes as one word."""
        if self.alone or not (
            buffers.ready or buffers.due_at is not None or buffers.cancelled or buffers.behind or room or events
        ):
            return
        with self._lock:
            waiting = self._has_pending()
            self._merge(buffers, room, events)
        if not waiting:
            os.write(self._wake_writer, b"!")

    def _has_pending(self) -> bool:
        one = self._pending
        return bool(
            one.ready
            or one.due_at is not None
            or one.cancelled
            or one.behind
            or self._pending_room
            or self._pending_events
        )

    def _merge(self, buffers: Buffers, room: list[str], events: bool) -> None:
        into = self._pending
        into.ready |= buffers.ready
        for level in buffers.ready:
            lowest = buffers.lowest.get(level, 0)
            into.lowest[level] = min(into.lowest.get(level, lowest), lowest)
        if buffers.due_at is not None:
            into.due_at = buffers.due_at if into.due_at is None else min(into.due_at, buffers.due_at)
        into.cancelled += buffers.cancelled
        into.behind |= buffers.behind
        self._pending_room.update(room)
        self._pending_events |= events

    def close(self, seconds: float) -> None:
        self._ending.set()
        os.write(self._wake_writer, b"!")
        self._thread.join(seconds)
        if not self._thread.is_alive():
            os.close(self._wake_reader)
            os.close(self._wake_writer)

    # The thread

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                connection = self._wires.connect_patiently(self._ending)
            except Fatal:
                return
            try:
                self._serve(connection)
            except psycopg.Error as error:
                log.warning("herald_lost", error=str(error))
                self._ending.wait(AFTER_LOSS_SECONDS)
            finally:
                connection.close()

    def _serve(self, connection: Connection) -> None:
        # Asked for: behind a pooler the driver knows a made-up number.
        ((own,),) = connection.execute("SELECT pg_backend_pid()").fetchall()
        connection.add_notify_handler(lambda notify: self._hear(own, notify.pid, notify.payload))
        # A word needs no sync: if it is lost with the server, so is every connection that would hear it.
        connection.execute("SET synchronous_commit = off")
        connection.execute(f"LISTEN {CHANNEL}".encode())
        self._notify(connection, codec.encode_text(Word(hello=True)))
        facts_at = 0.0
        while not self._ending.is_set():
            if self._clock.monotonic() >= facts_at:
                self._read_facts(connection)
                facts_at = self._clock.monotonic() + FACTS_SECONDS
            if self._wait(connection, own):
                self._ending.wait(PAUSE_SECONDS - (self._clock.monotonic() - self._spoke_at))
                self._speak(connection)

    def _wait(self, connection: Connection, own: int) -> bool:
        """Hear what comes until there is something to say."""
        readable, _, _ = select.select([connection.fileno(), self._wake_reader], [], [], FACTS_SECONDS)
        if connection.fileno() in readable:
            connection.pgconn.consume_input()
            while (notify := connection.pgconn.notifies()) is not None:
                self._hear(own, notify.be_pid, notify.extra.decode())
        if self._wake_reader in readable:
            os.read(self._wake_reader, 4096)
            return True
        return False

    def _hear(self, own: int, pid: int, payload: str) -> None:
        if pid == own:
            return
        try:
            word = _decoder.decode(payload)
        except msgspec.MsgspecError:
            log.warning("word_not_understood", payload=payload[:200])
            return
        if word.hello:
            self.alone = False
        self._heard(word)

    def _speak(self, connection: Connection) -> None:
        with self._lock:
            buffers, room, events = self._pending, sorted(self._pending_room), self._pending_events
            self._pending, self._pending_room, self._pending_events = Buffers(), set(), False
        self._spoke_at = self._clock.monotonic()
        for payload in words(buffers, room, events=events):
            self._notify(connection, payload)

    def _notify(self, connection: Connection, payload: str) -> None:
        connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, payload))

    def _read_facts(self, connection: Connection) -> None:
        row: tuple[Any, ...] = connection.execute(sql.read_facts.postgres.encode()).fetchall()[0]
        self.facts = dict(zip(("dead_tuples", "oldest_xmin_age", "events_unnumbered", "owners"), row, strict=True))
        self.alone = self.facts["owners"] <= 1
