"""Loading and saving: rows of dispatch's tables to its nouns and back, through named queries."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import msgspec

from ulak import codec
from ulak.dispatch.model import (
    Candidate,
    Contact,
    Excluded,
    Helper,
    HelpTask,
    Offer,
    OfferState,
    SearchResult,
    TaskState,
)
from ulak.dispatch.nearby.geo import Point
from ulak.dispatch.world import World, WorldChanges
from ulak.errors import Unavailable
from ulak.spine.query import Queries, Query
from ulak.spine.store import Tx

sql = Queries(__package__)

Row = tuple[Any, ...]

candidates_of = msgspec.msgpack.Decoder(tuple[Candidate, ...]).decode
excluded_of = msgspec.msgpack.Decoder(tuple[Excluded, ...]).decode
_pack = msgspec.msgpack.Encoder().encode


# From rows


def to_helper(row: Row) -> Helper:
    cell = row[7]
    return Helper(
        id=row[0],
        helper=row[1],
        name=row[2],
        active=bool(row[3]),
        doing=row[4],
        latitude=row[5],
        longitude=row[6],
        point=None if cell is None else Point(cell, row[8], row[9], row[10]),
        position_at=row[11],
        skills=tuple(codec.decode(row[12])),
        language=row[13],
        contact=Contact(row[14], row[15]),
        month=row[16],
        completed=row[17],
        expired=row[18],
        timeouts=row[19],
        served_at=row[20],
    )


def to_task(row: Row) -> HelpTask:
    return HelpTask(
        id=row[0],
        requester=row[1],
        category=row[2],
        latitude=row[3],
        longitude=row[4],
        radius=row[5] / 1000,
        deadline_seconds=row[6] / 1000,
        width=row[7],
        created_at=row[8],
        description=row[9],
        skills=tuple(codec.decode(row[10])),
        language=row[11],
        contact=Contact(row[12], row[13]),
        state=TaskState(row[14]),
        helper=row[15],
        helper_name=row[16],
        searches=row[17],
        max_searches=row[18],
        searched_at=row[19],
        place=row[20],
        timer=row[21],
        assigned_at=row[22],
        ended_at=row[23],
        reason=row[24],
        once=row[25],
        digest=row[26],
        trace=row[27],
    )


def to_offer(row: Row) -> Offer:
    identifier, task, helper, state, opened_at, deadline_at, distance, *rest = row
    return Offer(identifier, task, helper, OfferState(state), opened_at, deadline_at, distance / 1000, *rest)


# Loading what a batch needs. On PostgreSQL tasks are locked first, then helpers, each in the order of their ids.


def load_tasks(tx: Tx, world: World, ids: Collection[int]) -> None:
    wanted = sorted(set(ids))
    if not wanted:
        return
    before = world.changes.before
    for row in tx.rows(sql.lock_tasks, ids=wanted):
        world.tasks[row[0]], world.offers[row[0]], before[row[0]] = to_task(row), [], row[14]
    for row in sorted(tx.rows(sql.load_offers, tasks=wanted)):  # by id
        if row[1] in world.offers:
            world.offers[row[1]].append(to_offer(row))
            before[row[0]] = row[3]


def load_lists(tx: Tx, world: World, tasks: Iterable[HelpTask]) -> None:
    wanted = sorted((task.id, task.searches - 1) for task in tasks if task.searches)
    if wanted:
        found = tx.rows(sql.load_candidates, tasks=[one for one, _ in wanted], searches=[one for _, one in wanted])
        world.lists |= {task: candidates_of(packed) for task, _, packed in found}


class KnownHelper(msgspec.Struct, array_like=True, gc=False):
    helper: str
    id: int


def known_helpers(tx: Tx, names: Collection[str]) -> dict[str, int]:
    """Thousands at once: packed, since fetching one by one would give the interpreter's lock away as often."""
    return {one.helper: one.id for one in tx.rows_as(sql.find_known, KnownHelper, names=list(names))}


def load_names(tx: Tx, world: World, names: Collection[str]) -> None:
    if names:
        world.names |= known_helpers(tx, set(names))


def load_helpers(tx: Tx, world: World, ids: Collection[int]) -> None:
    wanted = sorted(set(ids))
    if wanted:
        world.helpers = {row[0]: to_helper(row) for row in tx.rows(sql.lock_helpers, ids=wanted)}
    world.seen = set(wanted)


def find_once(tx: Tx, marks: Collection[str]) -> dict[str, tuple[int, str]]:
    """The tasks that keys have made, and the digests of their bodies."""
    if not marks:
        return {}
    return {mark: (task, digest) for mark, task, digest in tx.rows(sql.find_once, marks=sorted(marks))}


# Saving what it has changed


def save(tx: Tx, changes: WorldChanges) -> None:
    """A fixed number of statements, however many commands there were."""
    new_tasks, new_offers, new_helpers = changes.new_tasks, changes.new_offers, changes.new_helpers
    before = changes.before
    # What is freed goes first: a helper may be given up by one task and asked for another in the same commit.
    ends = [(*_offer_end(one), before[one.id]) for one in changes.offers.values() if one.id not in new_offers]
    _each(tx, sql.update_offers, ends)
    moves = [(*_task_change(one), before[one.id]) for one in changes.tasks.values() if one.id not in new_tasks]
    _each(tx, sql.update_tasks, moves)
    _many(tx, sql.insert_tasks, [_task_row(one) for one in new_tasks.values()])
    _many(tx, sql.insert_offers, [_offer_row(one) for one in new_offers.values()])
    _many(tx, sql.insert_helpers, [_helper_row(one) for one in new_helpers.values()])
    _each(
        tx, sql.update_helpers, [_helper_change(one) for one in changes.helpers.values() if one.id not in new_helpers]
    )
    _save_searches(tx, changes.searches)
    if changes.forgotten:
        tx.execute(sql.delete_helpers, ids=sorted(changes.forgotten))


def save_places(tx: Tx, helpers: Iterable[Helper]) -> None:
    """In the order of ids. A position that is older than the row's is left out."""
    _many(tx, sql.flush_positions, [(one.id, *_place(one)) for one in helpers])


def _save_searches(tx: Tx, searches: Sequence[tuple[HelpTask, int, SearchResult]]) -> None:
    _many(tx, sql.insert_candidates, [(task.id, number, _pack(found.candidates)) for task, number, found in searches])
    rows = [
        (task.id, number, found.at, round(found.radius * 1000), len(found.candidates), _pack(found.excluded),
         codec.encode_text(dict(found.counts)))
        for task, number, found in searches
    ]  # fmt: skip
    _many(tx, sql.insert_decisions, rows)


def _many(tx: Tx, query: Any, rows: Sequence[Row]) -> None:
    if rows:
        tx.insert_rows(query, rows)


def _each(tx: Tx, query: Query, rows: Sequence[Row]) -> None:
    """A row that is not as it was when the batch was decided undoes the batch; its commands then run one by one."""
    if rows and tx.update_rows(query, rows) != len(rows):
        raise Unavailable(f"{query.name}: a row has changed meanwhile; nothing was kept of this request, try it again")


def _place(helper: Helper) -> Row:
    cell, x, y, z = helper.point or (None, None, None, None)
    return helper.latitude, helper.longitude, cell, x, y, z, helper.position_at


def _helper_row(helper: Helper) -> Row:
    return (
        helper.id, helper.helper, helper.name, int(helper.active), helper.doing, *_place(helper),
        codec.encode_text(helper.skills), helper.language, helper.contact.notification_type, helper.contact.recipient,
        helper.month, helper.completed, helper.expired, helper.timeouts, helper.served_at,
    )  # fmt: skip


def _helper_change(helper: Helper) -> Row:
    return (
        helper.name, int(helper.active), helper.doing, codec.encode_text(helper.skills), helper.language,
        helper.contact.notification_type, helper.contact.recipient, helper.month, helper.completed, helper.expired,
        helper.timeouts, helper.served_at, helper.id,
    )  # fmt: skip


def _task_row(task: HelpTask) -> Row:
    return (
        task.id, task.requester, task.category, task.latitude, task.longitude, round(task.radius * 1000),
        round(task.deadline_seconds * 1000), task.width, task.created_at, task.description,
        codec.encode_text(task.skills), task.language, task.contact.notification_type, task.contact.recipient,
        *_task_change(task)[:-1], task.once, task.digest, task.trace,
    )  # fmt: skip


def _task_change(task: HelpTask) -> Row:
    return (
        task.state.value, task.helper, task.helper_name, task.searches, task.max_searches, task.searched_at,
        task.place, task.timer, task.assigned_at, task.ended_at, task.reason, task.id,
    )  # fmt: skip


def _offer_row(offer: Offer) -> Row:
    return (
        offer.id, offer.task, offer.helper, offer.state.value, offer.opened_at, offer.deadline_at,
        round(offer.distance * 1000), offer.timer, offer.message, offer.ended_at, offer.released_at, offer.reason,
    )  # fmt: skip


def _offer_end(offer: Offer) -> Row:
    return offer.state.value, offer.ended_at, offer.released_at, offer.reason, offer.id
