"""Reservations: capacity that was taken in memory for a caller's own transaction, until it is known how that ended.

The transaction itself writes the credit off, so a commit needs nothing more; a rollback gives the capacity back here.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ulak.spine.query import Queries
from ulak.spine.store import Tx

sql = Queries(__package__)


@dataclass(frozen=True, slots=True)
class Reservation:
    """`xid` is the caller's transaction, in which the row with `token` was written."""

    token: int
    xid: str
    pools: Counter[str]


class Reservations:
    def __init__(self) -> None:
        self._open: dict[int, Reservation] = {}
        self._ended: set[int] = set()

    def __len__(self) -> int:
        return len(self._open)

    def add(self, reservation: Reservation) -> None:
        self._open[reservation.token] = reservation

    def look(self, tx: Tx) -> list[tuple[int, bool, bool]]:
        """(token, is there, may still come) of every open reservation."""
        reservations = list(self._open.values())
        tokens, xids = (
            [reservation.token for reservation in reservations],
            [reservation.xid for reservation in reservations],
        )
        return [
            (token, there, bool(open_))
            for token, there, open_ in tx.rows(sql.find_reservations, tokens=tokens, xids=xids)
        ]

    def settle(self, seen: list[tuple[int, bool, bool]]) -> Counter[str]:
        """Close reservations whose transactions have ended; return the capacity that comes back.

        A transaction may commit between the look for its token and the look at its state, so two looks have to agree.
        """
        back: Counter[str] = Counter()
        for token, there, may_come in seen:
            if there:
                self._close(token)
            elif not may_come and token in self._ended:
                back += self._close(token).pools
            elif not may_come:
                self._ended.add(token)
        return back

    def _close(self, token: int) -> Reservation:
        self._ended.discard(token)
        return self._open.pop(token)
