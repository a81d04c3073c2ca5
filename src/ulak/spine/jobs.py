"""The verbs with which people look at jobs and step in: show, list, cancel, redrive, edit, drop, count, follow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any, Required, TypedDict, cast

from ulak.clock import Clock, to_datetime, to_millis
from ulak.errors import IllegalTransition, Invalid, NotFound
from ulak.ids import first_of
from ulak.spine.event import EventRecord, read_page
from ulak.spine.job import Record
from ulak.spine.query import Queries
from ulak.spine.store import Store
from ulak.spine.units import dead_letters
from ulak.spine.units.cancel import CANCEL, Cancelled
from ulak.spine.units.dead_letters import Filter
from ulak.spine.units.records import STATUS_OF, STATUSES, list_records, read_record
from ulak.spine.validate import is_number, is_text, is_whole, to_json

sql = Queries(__package__)

Ids = list[int]
Events = list[EventRecord]

MAX_LISTED = 1000
MAX_ID = (1 << 63) - 1


class Counts(TypedDict, total=False):
    """The live jobs of a kind; a status that none is in is left out."""

    ready: int
    deferred: int
    running: int
    behind: int
    suspect: int
    oldest_at: Required[datetime]


def _check_ids(identifiers: Ids) -> None:
    if not isinstance(identifiers, Sequence):
        raise Invalid(f"{identifiers!r:.50} is not a list of ids")
    for one in identifiers:
        if not isinstance(one, int):
            raise Invalid(f"{one!r:.50} is not a job's id; ids are whole numbers, so convert text with int(…)")
        if not abs(one) <= MAX_ID:
            raise NotFound(f"no job {one!r:.50}; ids are smaller")


def _check_cursor(name: str, cursor: int) -> None:
    if not is_whole(cursor, -MAX_ID, MAX_ID):
        raise Invalid(
            f"{name} must be a whole number of at most 19 digits, not {cursor!r:.50}",
            fields=[(name, "must be a whole number of at most 19 digits")],
        )


def _check_limit(limit: int, most: int = MAX_ID) -> None:
    if not is_whole(limit, 1, most):
        raise Invalid(
            f"limit {limit!r:.50} is out of range; use 1 to {most}", fields=[("limit", f"must be 1 to {most}")]
        )


def _check_text(name: str, text: str | None) -> None:
    if text is not None and text != "" and not is_text(text):
        raise Invalid(
            f"{name} must be text of up to 200 characters, not {text!r:.50}",
            fields=[(name, "must be text of up to 200 characters")],
        )


def _first_id(at: datetime | None, otherwise: int) -> int:
    return otherwise if at is None else min(first_of(to_millis(at)), 1 << 62)


class Jobs:
    """`ulak.jobs`: everything about jobs that are in the store already."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def get(self, identifier: int) -> Record:
        _check_ids([identifier])
        found = await self._store.read(read_record, identifier)
        if found is None:
            raise NotFound(f"no job {identifier}; it was never accepted here, or its history was pruned")
        return found

    async def list(
        self,
        kind: str | None = None,
        status: str | None = None,
        before: int | None = None,
        limit: int = 100,
        *,
        whole: bool = True,
        key: str | None = None,
        accepted_after: datetime | None = None,
        accepted_before: datetime | None = None,
    ) -> list[Record]:
        """Newest first; accepted at `accepted_after` or later and before `accepted_before`, where these are given.

        If not whole, payload and detail are None and the timeline is short: a page of few bytes.
        """
        if status is not None and status not in STATUSES:
            names = ", ".join(STATUSES)
            raise Invalid(f"no status {status!r}; there are: {names}", fields=[("status", f"must be one of {names}")])
        _check_limit(limit, MAX_LISTED)
        _check_text("kind", kind)
        _check_text("key", key)
        _check_cursor("before", before or 0)
        below = min((1 << 62) if before is None else before, _first_id(accepted_before, 1 << 62))
        least = _first_id(accepted_after, 0)
        return await self._store.read(list_records, kind, status, below, limit, whole=whole, key=key, least=least)

    async def cancel(self, identifier: int) -> Cancelled:
        """At once while it waits ("cancelled"), by a mark while it runs ("cancelling")."""
        _check_ids([identifier])
        verdict = await self._store.submit(CANCEL, identifier)
        if verdict == "finished":
            record = await self.get(identifier)
            raise IllegalTransition(f"job {identifier} is {record.status} already; there is nothing to cancel")
        return verdict

    async def find_dead(self, wanted: Filter, after: int = 0, limit: int = 100) -> Ids:
        _check_cursor("after", after)
        _check_limit(limit)
        for name in ("kind", "error_class", "contains", "code"):
            _check_text(name, getattr(wanted, name))
        return await self._store.read(dead_letters.find_ids, wanted, after, limit)

    async def redrive(self, identifiers: Ids, *, who: str = "python") -> Ids:
        """Put dead letters back to work; return those that went."""
        _check_ids(identifiers)
        return await self._store.write(dead_letters.redrive_by, who, identifiers)

    async def redrive_all(
        self, wanted: Filter, *, rate_per_second: float | None = None, who: str = "python"
    ) -> AsyncIterator[int]:
        """Every dead letter that fits, oldest first, at a rate if one is given; yields each id that went."""
        if rate_per_second is not None and not (is_number(rate_per_second) and rate_per_second > 0):
            raise Invalid(f"rate_per_second must be a number of more than 0, or None, not {rate_per_second!r:.50}")
        after, page = 0, 1 if rate_per_second else 200
        while ids := await self.find_dead(wanted, after, page):
            for identifier in await self.redrive(ids, who=who):
                yield identifier
            after = ids[-1]
            if rate_per_second:
                await self._pause(1 / rate_per_second)

    async def _pause(self, seconds: float) -> None:
        await self._clock.wait(asyncio.Event(), seconds)

    async def edit(self, identifier: int, payload: Any, *, who: str = "python") -> None:
        _check_ids([identifier])
        written = to_json(payload, f"dead letter {identifier}")
        await self._store.write(dead_letters.edit_by, who, identifier, written)

    async def drop(self, identifier: int, *, who: str = "python") -> None:
        _check_ids([identifier])
        await self._store.write(dead_letters.drop_by, who, identifier)

    async def counts(self) -> dict[str, Counts]:
        """Live jobs by kind and status, with the instant of the oldest under `oldest_at`."""
        found: dict[str, dict[str, int]] = {}
        oldest: dict[str, int] = {}
        for kind, state, number, millis in await self._store.read(lambda tx: tx.rows(sql.count_waiting)):
            found.setdefault(kind, {})[STATUS_OF[state]] = number
            oldest[kind] = min(oldest.get(kind, millis), millis)
        return {
            kind: cast("Counts", {**numbers, "oldest_at": to_datetime(oldest[kind])}) for kind, numbers in found.items()
        }

    async def tally(self) -> dict[str, dict[str, int]]:
        """How often each word was spoken of each kind, since the store was made."""
        found: dict[str, dict[str, int]] = {}
        for word, kind, number in await self._store.read(lambda tx: tx.rows(sql.read_tally)):
            found.setdefault(kind, {})[word] = int(number)
        return found

    async def events(self, after: int = 0, limit: int = 1000) -> Events:
        """Events above the cursor, in commit order; the last one's `seq` is the next cursor.

        A cursor beyond the newest event is another log's, and a Conflict.
        """
        _check_cursor("after", after)
        _check_limit(limit)
        _, found = await self._store.read(read_page, after, limit)
        return found
