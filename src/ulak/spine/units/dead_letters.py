"""Dead letters: browse, edit, send again (one, by filter, at a rate, dry run first), or drop."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, get_args

from ulak import codec
from ulak.clock import given_millis, to_datetime
from ulak.errors import Invalid, NotFound
from ulak.spine.job import READY, SUSPECT_LEVEL, JobEvent, Record, Row
from ulak.spine.outcome import ErrorClass
from ulak.spine.query import Queries
from ulak.spine.store import Tx
from ulak.spine.units import audit
from ulak.spine.units.enqueue import insert_owed
from ulak.spine.units.finish import count_death
from ulak.spine.units.records import PAGE_BYTES, fitting_in, read_record
from ulak.spine.units.settle import note_entry

sql = Queries("ulak.spine")

AUDITED = 500  # ids that one line of the audit log names

ERROR_CLASSES: tuple[ErrorClass, ...] = get_args(ErrorClass)


@dataclass(frozen=True, slots=True)
class Filter:
    """Which dead letters: all fields that are given must fit. `contains` looks in the cause."""

    kind: str | None = None
    error_class: str | None = None
    contains: str | None = None
    died_before: datetime | None = None
    died_after: datetime | None = None
    code: str | None = None


def find_ids(tx: Tx, wanted: Filter, after: int, limit: int) -> list[int]:
    rows = tx.rows(
        sql.find_dead,
        kind=wanted.kind,
        error_class=_known_class(wanted.error_class),
        code=wanted.code,
        contains=None if wanted.contains is None else f"%{_literally(wanted.contains)}%",
        died_before=None if wanted.died_before is None else given_millis("died_before", wanted.died_before),
        died_after=None if wanted.died_after is None else given_millis("died_after", wanted.died_after),
        after=after,
        n=limit,
    )
    return [identifier for (identifier,) in rows]


def page_of_letters(tx: Tx, wanted: Filter, after: int, limit: int) -> tuple[list[Record], bool]:
    """Oldest first, and whether more may follow. A page whose payloads are large is shorter than `limit`."""
    ids = find_ids(tx, wanted, after, limit)
    weighed = tx.rows(sql.weigh_letters, ids=ids) if ids else []
    fitting = fitting_in(PAGE_BYTES, [size for _, size in weighed])
    records = [read_record(tx, identifier) for identifier, _ in weighed[:fitting]]
    return [record for record in records if record is not None], len(ids) == limit or fitting < len(ids)


def present_of(tx: Tx, ids: list[int]) -> list[int]:
    """Which of these are dead letters."""
    return [identifier for identifier, _ in tx.rows(sql.weigh_letters, ids=ids)]


def _known_class(name: str | None) -> str | None:
    if name is None or name in ERROR_CLASSES:
        return name
    names = ", ".join(ERROR_CLASSES)
    raise Invalid(
        f"no error class {name!r:.50}; there are: {names}", fields=[("error_class", f"must be one of {names}")]
    )


def _literally(text: str) -> str:
    """For LIKE, to which % and _ mean something."""
    return re.sub(r"([\\%_])", r"\\\1", text)


class _Letter(NamedTuple):
    """A dead letter that is about to go back to work, as take_dead.sql reads it."""

    id: int
    kind: str
    key: str | None
    slots: int
    prio: int
    epoch: int
    accepted_at: int
    expires_at: int | None
    unique_key: str | None
    continuation: str | None
    hold: int
    note: str | None
    trace: str | None
    payload: bytes
    error_class: str
    crashes: int

    @property
    def is_uncertain(self) -> bool:
        return self.crashes > 0 or self.error_class == "uncertain"

    def to_row(self, now: int) -> Row:
        return Row(
            id=self.id,
            kind=self.kind,
            key=self.key,
            slots=self.slots,
            slot=None,
            prio=self.prio,
            due_at=now,
            state=READY,
            accepted_at=self.accepted_at,
            expires_at=_unexpired(self.expires_at, now),
            unique_key=self.unique_key,
            continuation=self.continuation,
            hold=self.hold,
            payload=self.payload,
            trace=self.trace,
        )


def redrive(tx: Tx, ids: list[int]) -> list[int]:
    """Put dead letters back to work under their old ids, with fresh attempts; return which were there.

    Its old deaths no longer count against it, but an attempt that may have had its effect stays uncertain.
    """
    letters = map(_Letter._make, tx.rows(sql.take_dead, ids=ids))
    return [letter.id for letter in letters if _put_back(tx, letter)]


def _put_back(tx: Tx, letter: _Letter) -> bool:
    """Return whether it went: a letter whose unique key another job has by now stays where it is."""
    if letter.unique_key is not None and tx.rows(sql.find_unique, kind=letter.kind, keys=[letter.unique_key]):
        return False
    insert_owed(tx, [letter.to_row(tx.now)])
    past = (letter.note or "") + _death(tx, letter.id) + note_entry(tx.now, JobEvent.REDRIVEN, 0)
    (turn,) = tx.turns(1)  # behind all jobs that waited while it was dead
    uncertain = letter.is_uncertain
    tx.execute(sql.restore_job, id=letter.id, epoch=letter.epoch, turn=turn, note=past, crashes=int(uncertain))
    if uncertain:
        tx.wake(letter.kind, SUSPECT_LEVEL, turn)
    tx.execute(sql.delete_dead, ids=[letter.id])
    tx.count(JobEvent.REDRIVEN, letter.kind)
    tx.count(JobEvent.ACCEPTED, letter.kind, -1)
    count_death(tx, letter.kind, letter.error_class, -1)
    tx.emit(JobEvent.REDRIVEN, letter.id, letter.kind)
    return True


def _death(tx: Tx, identifier: int) -> str:
    """Keep its last attempt and its end for the timeline, because their columns are used again."""
    row = tx.row(sql.read_dead, id=identifier)
    assert row is not None  # it was taken above, in this transaction
    attempt, started_at, died_at, cause, code = row[5], row[9], row[10], row[14], row[16]
    return note_entry(died_at, JobEvent.DEAD, attempt, started_at=started_at, cause=cause, code=code)


def _unexpired(expires_at: int | None, now: int) -> int | None:
    """A person asked for it now, so an expiry that has passed meanwhile no longer holds."""
    return None if expires_at is not None and expires_at <= now else expires_at


def edit(tx: Tx, identifier: int, payload: bytes) -> None:
    """Replace a dead letter's payload, before it is sent again."""
    try:
        codec.decode(payload)
    except ValueError as error:
        raise Invalid(f"the new payload of dead letter {identifier} is not JSON: {error}") from error
    if not tx.execute(sql.edit_dead, id=identifier, payload=payload):
        raise NotFound(f"no dead letter {identifier}; it may have been sent again already")


def drop(tx: Tx, identifier: int) -> None:
    if not tx.execute(sql.delete_dead, ids=[identifier]):
        raise NotFound(f"no dead letter {identifier}; it may have been sent again already")


# The same on a person's request, which the audit log records.


def redrive_by(tx: Tx, who: str, ids: list[int]) -> list[int]:
    back = redrive(tx, ids)
    for first in range(0, len(back), AUDITED):
        went = list(map(str, back[first : first + AUDITED]))
        audit.record(tx, who, "dead.redrive", went[0] if len(went) == 1 else f"{len(went)} dead letters", {"ids": went})
    return back


def edit_by(tx: Tx, who: str, identifier: int, payload: bytes) -> None:
    edit(tx, identifier, payload)
    audit.record(tx, who, "dead.edit", str(identifier))


def drop_by(tx: Tx, who: str, identifier: int) -> None:
    drop(tx, identifier)
    audit.record(tx, who, "dead.drop", str(identifier))


class Cause(NamedTuple):
    kind: str
    error_class: str
    code: str | None
    number: int
    last_at: datetime


def count_causes(tx: Tx, limit: int) -> list[Cause]:
    """The most frequent first."""
    return [
        Cause(kind, error_class, code, number, to_datetime(last))
        for kind, error_class, code, number, last in tx.rows(sql.count_dead_causes, n=limit)
    ]
