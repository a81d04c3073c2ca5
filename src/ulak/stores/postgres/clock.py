"""The database's clock, which all instances follow: asked at every connect and every few seconds.

In between it goes on by the time that passes here, so that setting this machine's clock changes nothing.
"""

from __future__ import annotations

from typing import Any

from psycopg import Connection

from ulak.clock import Clock, SteadyClock, SystemClock

_NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"


class DatabaseClock(SteadyClock):
    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self._offset_millis = clock.now() - clock.monotonic() * 1000
        self.by_hand = not isinstance(clock, SystemClock)
        if not self.by_hand:  # one that a test moves is left alone
            self.wall = self._database_now

    def _database_now(self) -> int:
        return int(self.monotonic() * 1000 + self._offset_millis)

    def ask(self, connection: Connection[Any]) -> None:
        asked = self.monotonic()
        ((database_now,),) = connection.execute(_NOW).fetchall()
        self.adjust(database_now, asked)

    def adjust(self, database_now: int, asked: float) -> None:
        """Follow the time that the database gave between the question and now; while the two agree nothing moves."""
        earliest, latest = database_now - 1 - self.monotonic() * 1000, database_now + 1 - asked * 1000
        self._offset_millis = min(max(self._offset_millis, earliest), latest)
