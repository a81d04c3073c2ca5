"""Counts of the whole store in one read: unfinished jobs, the tally, open breakers; and their balance."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from ulak.spine.breaker import Breaker, load_breakers
from ulak.spine.job import PARKED, JobEvent, State
from ulak.spine.query import Queries
from ulak.spine.store import Tx
from ulak.spine.units.followers import EventFollower, count_lost, list_followers
from ulak.spine.units.hold import count_held

sql = Queries("ulak.spine")

_STATES = {int(state): state.name.lower() for state in State} | {int(State.LEASED): "running"}
_ACTIVE = tuple(name for state, name in _STATES.items() if state not in PARKED)
_ENDS = (JobEvent.DONE, JobEvent.CANCELLED, JobEvent.EXPIRED, JobEvent.DEAD)


@dataclass(frozen=True, slots=True)
class Sample:
    live: dict[tuple[str, str], int] = field(default_factory=dict)
    oldest_at: dict[str, int] = field(default_factory=dict)
    tally: dict[tuple[str, str], int] = field(default_factory=dict)
    breakers: tuple[Breaker, ...] = ()
    followers: tuple[tuple[EventFollower, int], ...] = ()
    taken_at: int = 0
    held: int = 0  # by a restore, until a person lets them go

    def kinds(self) -> list[str]:
        return sorted({kind for kind, _ in self.live} | {kind for _, kind in self.tally})

    def depth(self, kind: str) -> int:
        return sum(number for (name, _), number in self.live.items() if name == kind)

    def active(self, kind: str) -> int:
        """Those that a worker runs, or could now."""
        return sum(self.live.get((kind, state), 0) for state in _ACTIVE)

    def difference(self, kind: str) -> int:
        """Accepted jobs, less those that ended (a redriven death is not an end), less those that live."""
        ended = sum(self.tally.get((word, kind), 0) for word in _ENDS) - self.tally.get((JobEvent.REDRIVEN, kind), 0)
        return self.tally.get((JobEvent.ACCEPTED, kind), 0) - ended - self.depth(kind)


def take_sample(tx: Tx) -> Sample:
    """One read, so that counts and tally are of the same moment."""
    live: Counter[tuple[str, str]] = Counter()
    oldest: dict[str, int] = {}
    for kind, state, number, oldest_at in tx.rows(sql.count_waiting):
        live[(kind, _STATES[state])] += number
        oldest[kind] = min(oldest.get(kind, oldest_at), oldest_at)
    tally = {(word, kind): int(number) for word, kind, number in tx.rows(sql.read_tally)}
    followers = tuple((one, count_lost(tx, one)) for one in list_followers(tx))
    return Sample(dict(live), oldest, tally, tuple(load_breakers(tx)), followers, tx.now, count_held(tx))
