"""The database's clock: this machine's, moved by the offset that was measured at connect. All instances then agree."""

from __future__ import annotations

from ulak.clock import Clock, SteadyClock, SystemClock


class DatabaseClock(SteadyClock):
    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self._offset_millis = 0
        self.by_hand = not isinstance(clock, SystemClock)

    def wall(self) -> int:
        return self._clock.now() + self._offset_millis

    def adjust(self, database_now: int) -> None:
        """Follow the database; a clock that a test moves by hand is left alone."""
        if not self.by_hand:
            self._offset_millis = database_now - self._clock.now()
