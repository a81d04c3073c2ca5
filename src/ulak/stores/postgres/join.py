"""Enqueuing in a transaction that the caller has open: the statements as data, and one small executor per driver.

Keyed jobs are put behind their key even if it has free slots: taking one would need a lock for an unknown time.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from ulak.errors import Conflict, Misconfigured
from ulak.spine.capacity import live_pool
from ulak.spine.event import events_for, to_block
from ulak.spine.job import BEHIND, DEFERRED, READY, Row
from ulak.spine.job import JobEvent as JobWord
from ulak.spine.query import Queries
from ulak.spine.store import AfterCommit
from ulak.stores.postgres.notices import words
from ulak.stores.postgres.owner import Owner
from ulak.stores.postgres.reservations import Reservation
from ulak.stores.postgres.session import translate

sql = Queries(__package__)
spine_sql = Queries("ulak.spine")

C = TypeVar("C")
Rows = list[tuple[Any, ...]]
Answer = tuple[list[int], Reservation | None]
Steps = Generator[tuple[str, dict[str, Any]], Rows, Answer]

_CAST = re.compile(r"%\((\w+)\)s::(\w+(?:\[\])?)")
_NAME = re.compile(r"%\((\w+)\)s")


def steps(placed: Sequence[Row], now: int, owner: Owner) -> Steps:
    """Yields statements with parameters, is sent their rows, and ends with the ids that `enqueue` would return."""
    token = owner.ids.take(now)  # before anything is written: there may be no ids for now
    names = sql.offer_jobs.postgres_parameters
    columns: dict[str, Any] = dict(zip(names, map(list, zip(*placed, strict=True)), strict=True))
    taken = {identifier for (identifier,) in (yield sql.offer_jobs.postgres, columns)}
    holders: dict[tuple[str, str | None], int] = {}
    for kind in sorted({row.kind for row in placed if row.id not in taken}):
        keys = [row.unique_key for row in placed if row.kind == kind and row.id not in taken]
        for identifier, _, key in (yield spine_sql.find_unique.postgres, {"kind": kind, "keys": keys}):
            holders[(kind, key)] = identifier
    accepted = [row for row in placed if row.id in taken]
    unheld = [row for row in placed if row.id not in taken and (row.kind, row.unique_key) not in holders]
    if unheld:
        # The caller may catch this and commit: no job may stay without an event.
        yield sql.withdraw_jobs.postgres, {"ids": list(taken)}
        raise _unseen(unheld[0])
    ids = [row.id if row.id in taken else holders[(row.kind, row.unique_key)] for row in placed]
    if not accepted:
        return ids, None
    pools = pools_of(accepted)
    ((_, xid), *_) = yield sql.announce_jobs.postgres, _announcement(accepted, now, owner, token, pools)
    return ids, Reservation(token, xid, pools)


def placed(row: Row, now: int) -> Row:
    """Deferred, behind its key, or ready."""
    if row.due_at > now:
        return row._replace(state=DEFERRED)
    return row if row.key is None else row._replace(state=BEHIND)


def pools_of(rows: Sequence[Row]) -> Counter[str]:
    """Return the capacity that the jobs need: parked jobs count only against the bound on live jobs."""
    return Counter(row.kind for row in rows if row.state == READY) + Counter(live_pool(row.kind) for row in rows)


def _unseen(row: Row) -> Conflict:
    return Conflict(
        f"the unique key {row.unique_key!r} of {row.kind} is held by a job that this transaction can't see yet, or was "
        "until now; nothing was enqueued, try again"
    )


def _announcement(rows: list[Row], now: int, owner: Owner, token: int, pools: Counter[str]) -> dict[str, Any]:
    counts = Counter(row.kind for row in rows)
    count, body = to_block(events_for(JobWord.ACCEPTED.value, rows, "key"))
    return {
        "token": token, "owner": owner.id, "node": owner.node, "at": now, "count": count,
        "body": body, "words": [JobWord.ACCEPTED.value] * len(counts), "kinds": list(counts),
        "numbers": list(counts.values()), "payloads": words(_news(rows), [], events=True, late=True),
        "credit_pools": list(pools), "credits": [-number for number in pools.values()],
    }  # fmt: skip


def _news(rows: list[Row]) -> AfterCommit:
    news = AfterCommit(
        due_at=min((row.due_at for row in rows if row.state == DEFERRED), default=None),
        behind=any(row.state == BEHIND for row in rows),
    )
    for row in rows:
        if row.state == READY:
            level = (row.kind, row.prio)
            news.ready.add(level)
            news.lowest[level] = min(row.id, news.lowest.get(level, row.id))
    return news


async def enqueue(connection: Any, rows: Sequence[Row], now: int, owner: Owner) -> Answer:
    """Run the steps on the caller's connection: psycopg or SQLAlchemy, each blocking or asynchronous."""
    plan = steps(rows, now, owner)
    try:
        if isinstance(connection, psycopg.AsyncConnection):
            return await _run_psycopg_async(connection, plan)
        if isinstance(connection, psycopg.Connection):
            _check(connection)
            return await in_thread(_run_psycopg, connection, plan)
        return await _run_sqlalchemy(connection, plan)
    except psycopg.errors.UndefinedTable as error:
        raise Misconfigured(
            "the given connection is to another database than the store, or to another schema in it"
        ) from error
    except psycopg.Error as error:
        raise translate(error) from error


def _check(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    status = connection.info.transaction_status
    if status == TransactionStatus.INERROR:
        raise Conflict("the transaction has failed already; roll it back and begin again")
    if connection.autocommit and status == TransactionStatus.IDLE:
        raise Misconfigured(
            "the connection is in autocommit mode with no transaction open; use `with connection.transaction():`"
        )


async def in_thread(run: Callable[[C, Steps], Answer], connection: C, plan: Steps) -> Answer:
    """Wait for the thread's end, cancelled or not: only its result says what it has left in the transaction."""
    work = asyncio.ensure_future(asyncio.to_thread(run, connection, plan))
    while not work.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([work])
    return work.result()


def _run_psycopg(connection: psycopg.Connection[Any], plan: Steps) -> Answer:
    # A cursor of our own: the caller's row factory must not shape our rows.
    with connection.cursor(row_factory=tuple_row) as cursor:
        return drive(plan, lambda statement, values: cursor.execute(statement.encode(), values).fetchall())


async def _run_psycopg_async(connection: psycopg.AsyncConnection[Any], plan: Steps) -> Answer:
    _check(connection)
    async with connection.cursor(row_factory=tuple_row) as cursor:
        try:
            statement, values = next(plan)
            while True:
                await cursor.execute(statement.encode(), values)
                statement, values = plan.send(await cursor.fetchall())
        except StopIteration as end:
            answer: Answer = end.value
            return answer


def drive(plan: Steps, execute: Callable[[str, dict[str, Any]], Rows]) -> Answer:
    """Run the steps with a blocking `execute`."""
    try:
        statement, values = next(plan)
        while True:
            statement, values = plan.send(execute(statement, values))
    except StopIteration as end:
        answer: Answer = end.value
        return answer


async def _run_sqlalchemy(connection: Any, plan: Steps) -> Answer:
    if not is_from(connection, "sqlalchemy"):
        raise Misconfigured(
            f"a {type(connection).__name__} can't carry a job; "
            "give a psycopg or SQLAlchemy connection or session on the store's database"
        )
    from ulak.stores.postgres.join_sqlalchemy import run

    return await run(connection, plan)


def is_from(value: Any, package: str) -> bool:
    """Whether a value's class, or one above it, is of a package; asked by name, so that nothing is imported for it."""
    return any(base.__module__.startswith(f"{package}.") for base in type(value).__mro__)


def as_named(statement: str) -> str:
    """A statement in the form that SQLAlchemy's `text` takes on every driver: :name, and CAST instead of ::."""
    return _NAME.sub(r":\1", _CAST.sub(r"CAST(:\1 AS \2)", statement)).replace("%%", "%")
