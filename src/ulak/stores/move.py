"""From a SQLite file to an empty PostgreSQL: all tables in one transaction, counted on both sides before the commit."""

from __future__ import annotations

import contextlib
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import NamedTuple

import msgspec

from ulak.clock import Clock
from ulak.errors import Conflict, Unavailable
from ulak.spine.query import Queries
from ulak.stores.migrate import Lines, judge, postgres_versions, prepare_postgres, replaced, tables
from ulak.stores.postgres.check import check_place
from ulak.stores.postgres.connections import Connection, connect
from ulak.stores.postgres.owner import OWNER_LOCK
from ulak.stores.postgres.session import in_our_words
from ulak.stores.seal import Seal, lift_seal, read_seal, set_seal
from ulak.stores.sqlite import session as sqlite_session

sql = Queries("ulak.spine")

LEFT_OUT = {
    "owner": "the processes that work on a store; those of the file are gone, and others register themselves",
    "event_outbox": "events that PostgreSQL's relay has not yet numbered; a file numbers them as it commits",
    "capacity": "capacity per pool; counted from the live jobs at the next start",
    "credit": "capacity that processes hold; counted with it",
    "schema_version": "the target's own",
}
# Not the token of the file's last commit, and not the mark of the move.
_WHERE = {"meta": " WHERE name NOT IN ('token', 'move')"}

_PAGE = 1000
_PATIENCE = "SET LOCAL lock_timeout = '10s'"
_CLOCK = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
# Credit of an owner that does not exist makes the first process that starts recount the capacity, even if two do.
_ASK_FOR_RECOUNT = "INSERT INTO credit (pool, owner, held) VALUES ('moved', 0, 1)"

Advance = Callable[[str, int], object]


class Count(NamedTuple):
    table: str
    source: int
    target: int


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """Errors of both databases, translated."""
    try:
        with in_our_words():
            yield
    except sqlite3.Error as error:
        raise sqlite_session.translate(error) from error


def moved(lines: Lines) -> list[str]:
    """Every table of every line, but those that the spine leaves out."""
    return [table for table in tables(lines, "sqlite") if table not in LEFT_OUT]


def work_of(lines: Lines) -> list[str]:
    """The tables that have rows only when a store has worked: a target that has any is refused."""
    state = replaced(lines, "sqlite")
    return [table for table in moved(lines) if table not in state]


@_translated()
def count_source(source: sqlite3.Connection, lines: Lines) -> dict[str, int]:
    return {
        table: source.execute(f"SELECT count(*) FROM {table}{_WHERE.get(table, '')}").fetchone()[0]
        for table in moved(lines)
    }


def find_foreign(source: sqlite3.Connection, lines: Lines) -> list[str]:
    """Tables that somebody else has made in the file."""
    found = {name for (name,) in source.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    foreign = found - set(tables(lines, "sqlite")) - set(LEFT_OUT)
    return sorted(name for name in foreign if not name.startswith("sqlite_"))


@_translated()
def check_target(address: str, lines: Lines) -> None:
    """Refuse a target that can't take the work. Changes nothing."""
    check_place(partial(connect, address), lines)
    with contextlib.closing(connect(address)) as target, target.transaction(force_rollback=True):
        if versions := postgres_versions(target):
            judge(versions, lines, "postgres")
            _check_deserted(target)
            _check_empty(target, lines)


@_translated()
def find_out(source: sqlite3.Connection, address: str) -> bool:
    """Whether the work of a sealed source has arrived. If not, the seal is lifted."""
    seal = read_seal(source)
    if seal is None:
        return False
    if seal.arrived:
        raise Conflict(f"this store was moved already, to {seal.place}; work with that one")
    with contextlib.closing(connect(address)) as target, target.transaction():
        if seal.place != _place(target):
            raise Conflict(f"a move of this store to {seal.place} was interrupted; run that one again first")
        arrived = bool(postgres_versions(target)) and _has_token(target, seal.token)
    if arrived:
        set_seal(source, msgspec.structs.replace(seal, arrived=True))
    else:
        lift_seal(source)
    return arrived


def _place(target: Connection) -> str:
    info = target.info
    return f"{info.dbname} on {info.host}:{info.port}"


def _has_token(target: Connection, token: str) -> bool:
    _lock(target)  # the interrupted move holds the same lock for as long as its commit is undecided
    return target.execute("SELECT 1 FROM meta WHERE name = 'move' AND value = %s", (token,)).fetchone() is not None


@_translated()
def move(source: sqlite3.Connection, address: str, lines: Lines, clock: Clock, advance: Advance) -> list[Count]:
    """All or nothing. The source has no leases and nobody else opens it; afterwards it is sealed."""
    token = secrets.token_hex(16)
    try:
        with contextlib.closing(connect(address)) as target:
            prepare_postgres(target, lines, clock.now())
            with target.transaction():
                _enter(target, lines)
                counts = _fill(source, target, lines, advance)
                target.execute("INSERT INTO meta (name, value) VALUES ('move', %s)", (token,))
                seal = Seal(token, _place(target))
                set_seal(source, seal)
    except Exception as error:
        if (found := read_seal(source)) is not None and found.token == token:
            raise Unavailable(
                f"the answer to the commit was lost ({error}); run the same command again: it finds out what became "
                "of it. Until then nobody can work on the source",
                outcome="unknown",
            ) from error
        raise
    set_seal(source, msgspec.structs.replace(seal, arrived=True))
    return counts


def _enter(target: Connection, lines: Lines) -> None:
    """Until the transaction ends, no process joins and only we write. Later ones make ids above the moved ones."""
    _lock(target)
    locked = ", ".join((*moved(lines), "event_outbox"))
    target.execute(f"LOCK TABLE {locked} IN SHARE ROW EXCLUSIVE MODE".encode())
    _check_deserted(target)
    _check_empty(target, lines)


def _lock(target: Connection) -> None:
    target.execute(_PATIENCE)
    target.execute("SELECT pg_advisory_xact_lock(%s)", (OWNER_LOCK,))


def _check_deserted(target: Connection) -> None:
    """Refuse a target that a process works on: it does not know the incoming ids. A frozen one registers again."""
    ((now,),) = target.execute(_CLOCK).fetchall()
    for owner, _, label, _, lease_at in target.execute(sql.list_owners.postgres.encode()).fetchall():
        if lease_at >= now:
            raise Conflict(
                f"a process ({label}) works on the target; stop it. One that was killed counts as working for "
                f"{(lease_at - now) // 1000 + 1} more seconds"
            )
        target.execute(sql.bury_owner.postgres.encode(), {"id": owner, "now": now})


def _check_empty(target: Connection, lines: Lines) -> None:
    filled = {table: table for table in work_of(lines)} | {"event_outbox": "event_outbox WHERE count > 0"}
    found = {table: _count(target, rows) for table, rows in filled.items()}
    if any(found.values()):
        what = ", ".join(f"{table} {number}" for table, number in found.items() if number)
        raise Conflict(f"the target has work of its own (rows: {what}); name a database that is empty")


def _count(target: Connection, rows: str) -> int:
    ((number,),) = target.execute(f"SELECT count(*) FROM {rows}".encode()).fetchall()
    return int(number)


def _fill(source: sqlite3.Connection, target: Connection, lines: Lines, advance: Advance) -> list[Count]:
    expected = count_source(source, lines)
    for table in reversed(replaced(lines, "sqlite")):
        target.execute(f"DELETE FROM {table}".encode())
    for table in expected:
        _copy(source, target, table, advance)
    target.execute(_ASK_FOR_RECOUNT)
    counts = [Count(table, number, _count(target, table)) for table, number in expected.items()]
    different = [count for count in counts if count.source != count.target]
    if different:
        told = ", ".join(f"{table} {there} instead of {here}" for table, here, there in different)
        raise Conflict(f"the row counts of target and source differ ({told}); nothing was moved")
    return counts


def _copy(source: sqlite3.Connection, target: Connection, table: str, advance: Advance) -> None:
    types = {row[1]: row[2] for row in source.execute(f"PRAGMA table_info({table})")}
    # The casts, because a value in SQLite has a type of its own: bytes in a text column would arrive as hex digits.
    values = ", ".join(f"CAST({column} AS {kind})" for column, kind in types.items())
    rows = source.execute(f"SELECT {values} FROM {table}{_WHERE.get(table, '')}")
    with target.cursor() as cursor, cursor.copy(f"COPY {table} ({', '.join(types)}) FROM STDIN".encode()) as copy:
        while page := list(islice(rows, _PAGE)):
            for row in page:
                copy.write_row(row)
            advance(table, len(page))
