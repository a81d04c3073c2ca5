"""The relay: one elected process numbers committed events, so that a reader can follow the log without a gap.

A sequence in the writers' transactions would not do: a later number may commit first, and a cursor skips the others.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from ulak.clock import Clock, SystemClock
from ulak.log import get_logger
from ulak.spine.query import Queries
from ulak.stores.postgres.connections import Connection, PostgresConnections
from ulak.stores.postgres.owner import RELAY_LOCK
from ulak.stores.postgres.session import TOKEN_KEPT_MILLIS

log = get_logger("ulak.relay")
sql = Queries(__package__)

PAUSE_SECONDS = 0.025  # between two passes; each takes all that has come
POLL_SECONDS = 0.25
ELECTION_SECONDS = 1.0
BLOCKS_PER_PASS = 500
TOKENS_PER_FOLD = 1000
_SETTINGS = (
    "SET plan_cache_mode = force_generic_plan; SET jit = off; SET enable_seqscan = off; SET enable_bitmapscan = off"
)
# Quick passes start near the newest block. A full one finds what commits late: it is made when a caller's transaction
# says that it has committed, and every second, should that word be lost.
_LATE = 1000  # how far below the newest block a quick pass looks
FULL_SECONDS = 1.0


class Relay:
    def __init__(self, connections: PostgresConnections, clock: Clock, moved: Callable[[], None]) -> None:
        self._connections = connections
        self._clock = clock
        self._ending = threading.Event()
        self._moved = moved
        self._wake = threading.Event()
        self._highest = 0
        self._is_late = False  # something may have come below where a quick pass looks
        self._full_at = 0.0
        self._more_to_fold = False
        self._thread = threading.Thread(target=self._run, name="ulak-relay", daemon=True)
        self.leads = False

    def start(self) -> None:
        self._thread.start()

    def wake(self, *, late: bool = False) -> None:
        """There is something to number; `late` when its place may be far below the newest."""
        self._is_late |= late
        self._wake.set()

    def close(self, seconds: float) -> None:
        """Number the rest, then end the thread, if the database lets it."""
        self._ending.set()
        self._wake.set()
        self._thread.join(seconds)

    def _run(self) -> None:
        self._connections.serve_patiently(self._ending, self._serve, "relay")

    def _serve(self, connection: Connection) -> None:
        try:
            self._serve_as_elected(connection)
        finally:
            self.leads = False

    def _serve_as_elected(self, connection: Connection) -> None:
        connection.execute(_SETTINGS)
        self._elect(connection)
        while not self._ending.is_set():
            self._wake.clear()
            while self._pass(connection) and not self._ending.is_set():
                self._moved()
                self._ending.wait(PAUSE_SECONDS)
            self._wake.wait(POLL_SECONDS)
        self._pass(connection)

    def _elect(self, connection: Connection) -> None:
        """Wait to be the only relay; the lock goes with the connection."""
        while not self._ending.is_set():
            row = connection.execute("SELECT pg_try_advisory_lock(%s)", (RELAY_LOCK,)).fetchone()
            if row is not None and row[0]:
                self.leads, self._highest, self._full_at = True, 0, 0.0
                return
            self._ending.wait(ELECTION_SECONDS)

    def _pass(self, connection: Connection) -> bool:
        if not self.leads:
            return False
        now = SystemClock.monotonic()
        full = self._is_late or now >= self._full_at
        if full:
            self._is_late, self._full_at = False, now + FULL_SECONDS
        parameters = {"floor": 0 if full else max(self._highest - _LATE, 0), "n": BLOCKS_PER_PASS}
        number, highest = connection.execute(sql.number_events.postgres.encode(), parameters, prepare=True).fetchall()[
            0
        ]
        self._highest = max(self._highest, highest or 0)
        if full or self._more_to_fold:
            self._fold(connection)
        return bool(number)

    def _fold(self, connection: Connection) -> None:
        """A slice, so that the events don't wait for long; if there is more, the next pass takes the next one."""
        parameters = {"before": self._clock.now() - TOKEN_KEPT_MILLIS, "n": TOKENS_PER_FOLD}
        ((number,),) = connection.execute(sql.fold_tokens.postgres.encode(), parameters).fetchall()
        self._more_to_fold = number * 2 >= TOKENS_PER_FOLD  # a few young ones may stand among the oldest
