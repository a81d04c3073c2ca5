"""A writing connection to PostgreSQL: begins, commits with a token, and translates the driver's errors."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import psycopg
from psycopg import errors

from ulak.errors import Conflict, Invalid, Misconfigured, Unavailable
from ulak.log import get_logger
from ulak.spine.event import to_block
from ulak.spine.query import Queries
from ulak.spine.store import Tx
from ulak.stores.postgres.clock import DatabaseClock
from ulak.stores.postgres.connections import FIRST_PAUSE_SECONDS, Connection, PostgresConnections, unreachable
from ulak.stores.postgres.credits import Credits
from ulak.stores.postgres.floors import TIMERS, Floors
from ulak.stores.postgres.owner import Owner
from ulak.stores.postgres.tx import Contended, PostgresTx
from ulak.stores.writer.session import BatchFailed, CommitUnknown, Fatal, SessionLost

log = get_logger("ulak.postgres")
sql = Queries(__package__)

# A plan that was made while the queue was empty must still be right when it is full, so the planner has one choice. As
# older servers price what is off as very expensive, they would compile every statement (jit).
_SETTINGS = """
SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off;
SET enable_hashjoin = off; SET enable_mergejoin = off;
SET plan_cache_mode = force_generic_plan; SET jit = off;
SET lock_timeout = '300ms'; SET idle_in_transaction_session_timeout = '30s'
"""
_BACKEND = "SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()"
# Where nothing can be written any more another server may be the primary by now, and where our statements are not known
# somebody has put another session in the place of ours.
_USELESS = (errors.ReadOnlySqlTransaction, errors.InvalidSqlStatementName, errors.DuplicatePreparedStatement)
_END_BACKEND = "SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity WHERE pid = %s AND backend_start = %s"

# Errors that another transaction causes in ours, and that pass when that one has ended.
_HINDERED = (Contended, errors.LockNotAvailable, errors.DeadlockDetected, errors.SerializationFailure)
# So many times a batch is run again for a lock that it waited for in vain, and for keys that it may not wait for before
# it has nothing else: that takes no time, and it knows more keys each time. Then each item answers for itself.
LOCK_WAITS = 3
CONTENTIONS = 16
TOKEN_KEPT_MILLIS = 3_600_000


class PostgresSession:
    def __init__(
        self,
        connections: PostgresConnections,
        clock: DatabaseClock,
        capacity: Credits,
        floors: Floors,
        owner: Owner,
        closing: threading.Event,
        *,
        admits: bool,
    ) -> None:
        self._connections = connections
        self._clock = clock
        self._credits = capacity
        self._floors = floors
        self._owner = owner
        self._closing = closing
        self._admits = admits
        self._last_now = 0
        self._token = 0
        self._tx: PostgresTx | None = None
        self._contended: set[str] = set()
        self._contentions = self._lock_waits = 0
        self._adopt(connections.connect())

    def _adopt(self, connection: Connection) -> None:
        self._connection = connection
        self._cursor = connection.cursor(binary=True)
        connection.execute(_SETTINGS)
        pid, started = connection.execute(_BACKEND).fetchall()[0]
        self._backend: tuple[int, datetime] = (pid, started)
        self._clock.ask(connection)

    def turn_to_next_batch(self) -> None:
        self._contended = set()
        self._contentions = self._lock_waits = 0

    def begin(self) -> Tx:
        self._last_now = max(self._last_now, self._clock.now())
        if self._last_now > self._owner.ids.good_until:  # frozen for a while: is the node still ours?
            self._owner.beat(self._cursor, self._last_now)
        ids, admits = self._owner.ids, self._admits
        tx = self._tx = PostgresTx(self._cursor, self._last_now, ids, self._credits, self._floors, admits=admits)
        if self._contended and self._is_patient():
            tx.lock_keys(sorted(self._contended))
        return tx

    def savepoint(self) -> None:
        if self._tx is not None:
            self._tx.begin()
            self._tx.save()
        self._cursor.execute(b"SAVEPOINT item")

    def release(self) -> None:
        self._cursor.execute(b"RELEASE item")

    def rollback_to(self) -> None:
        try:
            self._cursor.execute(b"ROLLBACK TO item")
            self._cursor.execute(b"RELEASE item")
        except psycopg.Error as error:
            raise SessionLost(str(error)) from error
        if self._tx is not None:
            self._tx.restore()

    def commit(self, tx: Tx) -> None:
        assert isinstance(tx, PostgresTx)
        self._token = 0
        try:
            tx.balance()
            self._send_commit(tx)
        except psycopg.Error as error:
            refused = tx.unsent is not None or isinstance(error, errors.InFailedSqlTransaction)
            if refused and not self._gone(error):
                raise  # a unit's rows were refused, not the commit: each item then runs by itself
            self._fail_commit(error)
        except Unavailable as error:  # there is no id for the token
            self.rollback()
            raise BatchFailed(error) from error
        self._conclude(tx)

    def _send_commit(self, tx: PostgresTx) -> None:
        """Send the row that proves this commit with the COMMIT or with the only insert: one wait, both or neither."""
        left = self._leavings(tx)
        if left is not None and tx.unsent is not None:
            self._token = left["token"]
            tx.run_with_unsent(sql.insert_outbox, left)
            return
        if left is not None:
            tx.begin()
        if left is None and not tx.begun:
            return
        with self._connection.pipeline():
            if left is not None:
                tx.execute(sql.insert_outbox, **left)
                self._token = left["token"]
            self._connection.execute(b"COMMIT", prepare=False)

    def _leavings(self, tx: PostgresTx) -> dict[str, Any] | None:
        """The events, counts and capacity of a transaction that has changed something, as one row."""
        buffers = tx.after_commit
        counts = {name: number for name, number in sorted(buffers.counts.items()) if number}
        free = {pool: number for pool, number in sorted(buffers.free.items()) if number}
        if not (tx.changed or buffers.events or counts or free):
            return None
        count, body = to_block(buffers.events) if buffers.events else (0, b"")
        return {
            "token": tx.ids.take(tx.now), "owner": self._owner.id, "node": self._owner.node, "at": tx.now,
            "count": count, "body": body,
            "words": [str(word) for word, _ in counts], "kinds": [kind for _, kind in counts],
            "numbers": list(counts.values()), "credit_pools": list(free), "credits": list(free.values()),
        }  # fmt: skip

    def _fail_commit(self, error: psycopg.Error) -> None:
        """A lost reply is neither yes nor no. A refusal that was heard is a no."""
        if self._gone(error) and self._token:
            raise CommitUnknown(str(error)) from error
        if self.lost(error):
            raise SessionLost(str(error)) from error
        self.rollback()
        raise BatchFailed(error) from error

    def _conclude(self, tx: PostgresTx) -> None:
        """Apply a commit to memory at once, before this thread begins the next batch."""
        self._credits.apply(tx.after_commit.free)
        self._credits.move(tx.after_commit.parked)
        self._credits.take(tx.lent)
        for level, highest in tx.taken.items():
            self._floors.raise_to(level, highest)
        for level, turn in tx.after_commit.lowest.items():
            self._floors.lower(level, turn)
        if tx.after_commit.due_at is not None:
            self._floors.lower(TIMERS, tx.after_commit.due_at)

    def rollback(self) -> None:
        if not self._connection.closed:
            try:
                self._cursor.execute(b"ROLLBACK")
            except psycopg.Error:  # a lost session has nothing to roll back, and one that can't is lost
                self._connection.close()

    def reopen(self) -> None:
        if not self._connection.closed:
            self.rollback()
            self._closing.wait(random.uniform(0.001, 0.01))
            return
        log.warning("database_lost")
        before = self._backend
        while True:
            connection = self._connections.connect_patiently(self._closing)
            try:
                self._adopt(connection)
                self._end_backend(*before)
                self._owner.beat(self._cursor, self._clock.now())
            except psycopg.OperationalError:
                connection.close()
                self._closing.wait(FIRST_PAUSE_SECONDS)
            else:
                log.info("database_back")
                return

    def _end_backend(self, pid: int, started: datetime) -> None:
        """The old backend may still be busy with our commit: only when it is gone is its outcome settled."""
        while self._connection.execute(_END_BACKEND, (pid, started)).fetchone() is not None:
            pass

    def committed(self) -> bool:
        if self._tx is None or not self._token:
            return False
        if self._clock.now() - self._tx.now > TOKEN_KEPT_MILLIS:
            raise Fatal("the database was unreachable for too long to find out the outcome of the last commit")
        found = self._look_up(self._token)
        if found:
            self._conclude(self._tx)
        return found

    def _look_up(self, token: int) -> bool:
        while True:
            try:
                return (
                    self._connection.execute(sql.find_token.postgres.encode(), {"token": token}).fetchone() is not None
                )
            except psycopg.OperationalError:
                self.reopen()

    def lost(self, error: BaseException) -> bool:
        """Whether the batch must run again as a whole: on a new connection, or because it met another one."""
        if self._gone(error):
            return True
        if isinstance(error, Contended):
            self._contended = error.keys
            self._contentions += 1
        elif isinstance(error, _HINDERED):
            self._lock_waits += 1
        else:
            return False
        return self._is_patient()

    def _is_patient(self) -> bool:
        return self._lock_waits <= LOCK_WAITS and self._contentions <= CONTENTIONS

    def _gone(self, error: BaseException) -> bool:
        """Whether this error is the connection's end. A server that stops says so before it hangs up."""
        if isinstance(error, _USELESS) or (isinstance(error, psycopg.OperationalError) and not _is_refusal(error)):
            self._connection.close()
        return self._connection.closed

    def translate(self, error: Exception) -> Exception:
        return translate(error)

    def close(self) -> None:
        self._connection.close()


def _is_refusal(error: psycopg.Error) -> bool:
    """Return whether the server refused a statement and goes on. An error without a code is the driver's own."""
    return error.sqlstate is not None and error.diag.severity_nonlocalized == "ERROR"


@contextlib.contextmanager
def in_our_words() -> Iterator[None]:
    try:
        yield
    except psycopg.OperationalError as error:
        if error.sqlstate is None:  # no connection came about, or it broke
            said = " ".join(str(error).split())
            raise Unavailable(f"the database can't be reached ({said}); check its address, and that it runs") from error
        raise translate(error) from error
    except psycopg.Error as error:
        raise translate(error) from error


def translate(error: Exception) -> Exception:
    if isinstance(error, _HINDERED):
        return Unavailable(
            "another transaction holds what this one needs (a key, a unique key or a row); try again when it has ended"
        )
    if not isinstance(error, psycopg.Error):
        return error
    if isinstance(error, errors.QueryCanceled):
        return Unavailable("the database took too long to answer; ask for less at a time")
    if isinstance(error, errors.InsufficientPrivilege):
        return Misconfigured(
            f"the role may not do this: {error.diag.message_primary}; "
            "let the owner of the tables do it, or grant the right"
        )
    if isinstance(error, errors.InFailedSqlTransaction):
        return Invalid("a statement of this unit failed, and the unit went on; let errors of the database through")
    if isinstance(error, errors.ProgramLimitExceeded):
        return Invalid(f"the database can't take this value: {error}")
    if isinstance(error, psycopg.IntegrityError):
        return Conflict(f"the database refused the change: {error}")
    if isinstance(error, psycopg.DataError | psycopg.ProgrammingError):
        return Invalid(f"the database can't take this value: {error}")
    if error.sqlstate is None:  # the driver speaks, of the wire
        return Unavailable(unreachable(error))
    return Unavailable(f"the database failed: {error.diag.message_primary}")
