"""Cron: entries that enqueue a job at certain times, one firing per time across all instances."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from ulak.clock import to_datetime, to_millis
from ulak.errors import Invalid
from ulak.spine.job import MAX_KIND
from ulak.spine.query import Queries
from ulak.spine.store import Tx, Verb, WriterQueue
from ulak.spine.units.enqueue import insert_owed
from ulak.spine.units.finish import new_row
from ulak.spine.validate import MAX_TEXT, is_kind, is_text, to_json

sql = Queries("ulak.spine")


@dataclass(frozen=True, slots=True)
class CronEntry:
    """`name` identifies the entry across instances and restarts. Times that passed while nobody ran fire once, late.

    With another expression or time zone it is another entry, whose times begin when the first process has it.
    """

    name: str
    expression: str
    kind: str
    payload: Any = None
    time_zone: str = "UTC"

    def check(self, now: int) -> None:
        """Every mistake that would otherwise show when it fires, at each of its times."""
        if not is_text(self.name):
            raise Invalid(
                f"a cron entry can't be named {self.name!r:.50}; give it a name of 1 to {MAX_TEXT} characters"
            )
        if not is_kind(self.kind):
            raise Invalid(f"cron entry {self.name}: {self.kind!r:.50} is not a kind; give 1 to {MAX_KIND} characters")
        to_json(self.payload, f"cron entry {self.name}")
        self.next_after(now)

    def next_after(self, now: int) -> int:
        """The next time after now. In an hour that comes twice CronSim begins with its first pass, which is over."""
        zone = _zone(self)
        try:
            times: Iterator[datetime] = CronSim(self.expression, to_datetime(now).astimezone(zone))
            return next(at for at in map(to_millis, times) if at > now)
        except (CronSimError, StopIteration, AttributeError) as error:
            raise Invalid(
                f"cron entry {self.name}: {self.expression!r} is not a cron expression ({error}); "
                "use five fields, or six with the seconds first"
            ) from error


def _zone(entry: CronEntry) -> ZoneInfo:
    try:
        return ZoneInfo(entry.time_zone)
    except (ZoneInfoNotFoundError, ValueError, TypeError) as error:
        raise Invalid(
            f"cron entry {entry.name}: no time zone {entry.time_zone!r}; use a name like Europe/Istanbul"
        ) from error


@dataclass(frozen=True, slots=True)
class Tick:
    """`opens` at the first look of a process. Later it leaves what the entry says to those that started after it:
    during a rolling deploy old and new ones fire by their own times, and don't take the entry from one another.
    """

    entries: tuple[CronEntry, ...]
    opens: bool = True


def fire_due(tx: Tx, tick: Tick) -> tuple[int, list[str]]:
    """Fire the entries that are due and not yet fired; return when to look again, and the jobs that were enqueued."""
    fired, following = [], []
    for entry in tick.entries:
        fired_at = _fired_at(tx, entry, opens=tick.opens)
        due_at = entry.next_after(fired_at)
        if due_at <= tx.now and tx.execute(sql.fire_cron, name=entry.name, before=fired_at, now=tx.now):
            payload = {"entry": entry.name, "due_at": due_at, "payload": entry.payload}
            insert_owed(tx, [new_row(tx, entry.kind, payload)])
            tx.emit("cron.fired", 0, entry.kind, [entry.name, due_at])
            fired.append(entry.name)
        following.append(entry.next_after(max(fired_at, tx.now)))
    return min(following), fired


def _fired_at(tx: Tx, entry: CronEntry, *, opens: bool) -> int:
    """When it last fired, or was opened."""
    row = None if opens else tx.row(sql.read_cron, name=entry.name)
    if row is None:
        tx.execute(sql.open_cron, name=entry.name, now=tx.now, expression=entry.expression, time_zone=entry.time_zone)
        row = tx.row(sql.read_cron, name=entry.name)
        assert row is not None  # opened above
    return int(row[0])


FIRE_DUE: Verb[Tick, tuple[int, list[str]]] = Verb(
    WriterQueue.TIMERS, lambda tx, items: [fire_due(tx, tick) for tick in items]
)
