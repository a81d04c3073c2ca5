"""Followers: durable, named cursors in the event log. The pruner stops at the slowest of them, up to a bound."""

from __future__ import annotations

from dataclasses import dataclass

from ulak.errors import Conflict, Invalid, NotFound
from ulak.spine.event import first_seq, last_seq
from ulak.spine.query import Queries
from ulak.spine.store import Tx
from ulak.spine.validate import MAX_TEXT, is_text

sql = Queries("ulak.spine")


@dataclass(frozen=True, slots=True)
class EventFollower:
    """`position` is the last event that it is done with; `lag` is how many have come since."""

    name: str
    position: int
    advanced_at: int
    lag: int


def register(tx: Tx, name: str, position: int | None = None) -> int:
    """Make a follower, or find it; return its position.

    A new one begins after `position`, or without one after the newest event.
    """
    if not is_text(name):
        raise Invalid(f"a follower can't be named {name!r:.50}; give it a name of 1 to {MAX_TEXT} characters")
    newest = last_seq(tx)
    if position is not None and not 0 <= position <= newest:
        raise Conflict(f"position {position} is not in the log, whose newest event is {newest}; begin within it")
    start = newest if position is None else position
    tx.execute(sql.register_follower, name=name, position=start, now=tx.now)
    return _known(tx, name)


def position(tx: Tx, name: str) -> int | None:
    """Where a follower stands; None when there is no such follower."""
    row = tx.row(sql.read_follower, name=name)
    return None if row is None else int(row[0])


def _known(tx: Tx, name: str) -> int:
    found = position(tx, name)
    if found is None:
        raise NotFound(f"no follower {name!r:.80}; register it first")
    return found


def advance(tx: Tx, name: str, to: int) -> int:
    """Note that a follower is done with all events up to `position`; return its position. It never goes back.

    Called in the unit that stores the results of these events, it makes sure that nothing is lost or done twice.
    """
    if not tx.execute(sql.advance_follower, name=name, position=to, now=tx.now):
        return _known(tx, name)
    return to


def forget(tx: Tx, name: str) -> bool:
    """Remove a follower: the pruner no longer waits for it. False when there was none."""
    return bool(tx.execute(sql.delete_follower, name=name))


def list_followers(tx: Tx) -> list[EventFollower]:
    """The slowest first."""
    newest = last_seq(tx)
    return [
        EventFollower(name, place, advanced_at, max(newest - place, 0))
        for name, place, advanced_at in tx.rows(sql.list_followers)
    ]


@dataclass(frozen=True, slots=True)
class Backlog:
    """A follower that old events are kept for, or that has lost some to the bound."""

    follower: str
    lag: int
    lost: int  # events that it has not read and can't read any more


def find_backlogs(tx: Tx, before: int) -> list[Backlog]:
    """Followers whose next event is older than an instant, or is gone."""
    return [
        Backlog(one.name, one.lag, lost)
        for one in list_followers(tx)
        if (lost := count_lost(tx, one)) or (one.lag and _is_older(tx, one.position + 1, before))
    ]


def count_lost(tx: Tx, follower: EventFollower) -> int:
    """How many events were pruned before it had read them."""
    return max(first_seq(tx) - 1 - follower.position, 0)


def _is_older(tx: Tx, seq: int, before: int) -> bool:
    row = tx.row(sql.read_block_time, seq=seq)
    return row is not None and int(row[0]) < before
