"""Shares instead of strict priority: an eighth of all places rotates over the lower levels, so that none starves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SHARE = 8


@dataclass
class Rotation:
    """Decides, time after time, which lower level is favoured and with how many places."""

    _claimed: int = 0
    _turn: int = 0

    def favour(self, free: int, levels: Sequence[int]) -> tuple[int, int]:
        """(level, how many): the part of these places that goes to a lower level before strict order rules."""
        if len(levels) < 2:
            return (levels[0] if levels else 0), 0
        lower = levels[1:]
        self._claimed += free
        share, self._claimed = divmod(self._claimed, SHARE)
        self._turn += share > 0  # a turn that gave nothing is not a turn
        return lower[self._turn % len(lower)], min(share, free)
