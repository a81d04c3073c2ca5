"""Circuit breakers, one per destination: closed, open, half-open.

Decisions are pure functions, `Breakers` remembers, and transitions are kept in the store.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import Literal

from ulak.clock import to_datetime
from ulak.errors import Invalid
from ulak.spine.query import Queries
from ulak.spine.store import Store, Tx
from ulak.spine.validate import is_number

sql = Queries(__package__)

BreakerState = Literal["closed", "open", "half-open"]

# Of more destinations than these, the one that was not used for longest is forgotten; an open one only if all are.
REMEMBERED = 10_000

# How long a trial may take before the next one is let through, and how often others ask whether it is over.
TRIAL_MILLIS = 30_000
TRIAL_PAUSE_MILLIS = 1000

EVER_MILLIS = 1 << 60

PAGE = 500  # of jobs that one transaction makes due: all at once, a hundred thousand would hold up everybody


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """Open after `failures` in a row; try one job after `open_seconds`, doubled up to the cap while it fails."""

    failures: int = 10
    open_seconds: float = 5.0
    cap_seconds: float = 300.0

    def __post_init__(self) -> None:
        for name, least in (("failures", 1), ("open_seconds", 0), ("cap_seconds", 0)):
            number = getattr(self, name)
            if not is_number(number, least) or (name == "failures" and not isinstance(number, int)):
                raise Invalid(f"{name} of a BreakerPolicy must be a number of at least {least}, not {number!r:.50}")


@dataclass(frozen=True, slots=True)
class Breaker:
    destination: str
    state: BreakerState = "closed"
    failures: int = 0
    opened: int = 0
    until_millis: int = 0

    @property
    def until_at(self) -> datetime | None:
        """When it lets a job try, or the next one if a trial is under way; None while it is closed."""
        return None if self.state == "closed" else to_datetime(self.until_millis)

    def left_millis(self, now: int) -> int:
        """Return the time within which all jobs that it has put off come back; the store may have added a little."""
        return max(self.until_millis - now, 0) + 1000

    def pause_seconds(self, now: int) -> float:
        """How long a job that was stopped should wait before it asks again; a trial is over soon."""
        longest = TRIAL_PAUSE_MILLIS if self.state == "half-open" else self.until_millis - now
        return max(min(self.until_millis - now, longest), 100) / 1000


def admit(breaker: Breaker, now: int) -> tuple[Breaker, bool]:
    """May a job go? An open breaker whose time is over lets exactly one through.

    A trial that was never heard of again (cancelled, or its process died) is followed by another one.
    """
    if breaker.state == "closed":
        return breaker, True
    if now >= breaker.until_millis:
        return replace(breaker, state="half-open", until_millis=now + TRIAL_MILLIS), True
    return breaker, False


def succeeded(breaker: Breaker) -> Breaker:
    return Breaker(breaker.destination)


def failed(breaker: Breaker, policy: BreakerPolicy, now: int) -> Breaker:
    failures = breaker.failures + 1
    if breaker.state == "open" or (breaker.state == "closed" and failures < policy.failures):
        return replace(breaker, failures=failures)  # those under way when it opened say nothing new
    pause = min(policy.open_seconds * 2**breaker.opened, policy.cap_seconds)
    return Breaker(breaker.destination, "open", failures, min(breaker.opened + 1, 20), now + round(pause * 1000))


class Breakers:
    """The breakers of one process. Changes of state are handed to `changed`, to be kept and shown."""

    def __init__(self) -> None:
        # Both with the one that was used last at the end.
        self._closed: dict[str, Breaker] = {}
        self._stopping: dict[str, Breaker] = {}
        self._missed: dict[str, Breaker] = {}
        self.changed: list[Breaker] = []

    def admit(self, destination: str, now: int) -> Breaker | None:
        """None when a job may go; otherwise the breaker that stops it."""
        known = self._find(destination)
        if known is None:
            return None
        after, may_go = admit(known, now)
        self._keep(known, after)
        return None if may_go else after

    def succeeded(self, destination: str) -> None:
        known = self._find(destination)
        if known is not None and (known.failures or known.state != "closed"):
            self._keep(known, succeeded(known))
            del self._closed[destination]

    def learned_nothing(self, destination: str, now: int) -> None:
        """An attempt has ended that says nothing of its destination; if it was the trial, the next one may try."""
        known = self._stopping.get(destination)
        if known is not None and known.state == "half-open":
            self._put(replace(known, until_millis=now))

    def failed(self, destination: str, policy: BreakerPolicy, now: int) -> None:
        known = self._find(destination) or Breaker(destination)
        self._keep(known, failed(known, policy, now))
        if len(self._closed) + len(self._stopping) > REMEMBERED:
            self._take_out(next(name for name in chain(self._closed, self._stopping) if name != destination))

    def _find(self, destination: str) -> Breaker | None:
        return self._stopping.get(destination) or self._closed.get(destination)

    def _keep(self, before: Breaker, after: Breaker) -> None:
        self._put(after)
        if before.state != after.state:
            self.changed.append(after)

    def _put(self, breaker: Breaker) -> None:
        self._take_out(breaker.destination)
        apart = self._closed if breaker.state == "closed" else self._stopping
        apart[breaker.destination] = breaker

    def _take_out(self, destination: str) -> Breaker | None:
        return self._stopping.pop(destination, None) or self._closed.pop(destination, None)

    def reset(self, destination: str) -> bool:
        found = self._take_out(destination)
        if found is not None and found.state != "closed":
            self.changed.append(Breaker(destination))
        return found is not None

    def stopping_at(self, destination: str) -> Breaker | None:
        return self._stopping.get(destination)

    def stopping(self) -> list[Breaker]:
        return list(self._stopping.values())

    def compare(self, kept: list[Breaker]) -> list[Breaker]:
        """Forget those that another process has closed: their rows are gone. Answers which.

        One that has just opened has no row yet; so a row must be missed twice, while nothing changes here.
        """
        rows = {breaker.destination for breaker in kept}
        before = self._missed
        self._missed = {one.destination: one for one in self.stopping() if one.destination not in rows}
        closed = [breaker for name, breaker in self._missed.items() if before.get(name) is breaker]
        for breaker in closed:
            del self._stopping[breaker.destination], self._missed[breaker.destination]
        return closed

    def load(self, rows: list[Breaker]) -> None:
        """At the start: those that were used last, if there are too many."""
        for breaker in sorted(rows, key=lambda one: one.until_millis)[-REMEMBERED:]:
            self._put(breaker)

    def all(self) -> list[Breaker]:
        return [*self._closed.values(), *self._stopping.values()]


def save_breakers(tx: Tx, changed: list[Breaker]) -> None:
    """Keep transitions, so that they outlive the process and others can see them."""
    for breaker in changed:
        tx.emit(f"breaker.{breaker.state}", 0, breaker.destination, [breaker.failures, breaker.until_millis])
        if breaker.state == "closed":
            tx.execute(sql.delete_breaker, destination=breaker.destination)
        else:
            tx.execute(
                sql.save_breaker,
                destination=breaker.destination,
                state=breaker.state,
                failures=breaker.failures,
                now=tx.now,
                until_at=breaker.until_millis,
            )


def hasten(tx: Tx, destination: str, within_millis: int = EVER_MILLIS) -> int:
    """A page of jobs that were tried at a destination, and would be due again within this time, is due now."""
    tx.lock_keys([destination])
    number = tx.execute(sql.hasten_jobs, key=destination, until=tx.now + within_millis, now=tx.now, n=PAGE)
    if number:
        tx.wake_at(tx.now)
    return number


async def hasten_all(store: Store, destination: str, within_millis: int = EVER_MILLIS) -> None:
    """Try jobs that were put off there at once, retries as well; scheduled ones keep their time."""
    while await store.write(hasten, destination, within_millis) == PAGE:
        pass


def load_breakers(tx: Tx) -> list[Breaker]:
    return [
        Breaker(destination, state, failures, 1, until_at)
        for destination, state, failures, until_at in tx.rows(sql.list_breakers)
    ]
