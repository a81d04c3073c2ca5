"""The connections of one store: made with patience, and cut at its end if the server does not answer on them."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

import psycopg

from ulak.log import get_logger
from ulak.stores.postgres import arrays
from ulak.stores.postgres.address import read_address
from ulak.stores.writer.session import Fatal

log = get_logger("ulak.postgres")

Connection = psycopg.Connection[tuple[Any, ...]]

FIRST_PAUSE_SECONDS = 0.02
MAX_PAUSE_SECONDS = 1.0
AFTER_LOSS_SECONDS = 0.1
_TOLD_EVERY = 30  # failures
MAX_PREPARED = 500  # statements of a connection: more than all of ours, so that none is prepared again and again

# Settings that our statements rely on, though a role, a database or the server may have other defaults; decision 0021.
# Our connections are idle for long, and a unit that has waited for a key reads what that freed.
_SESSION = """
SET statement_timeout = 0;
SELECT set_config(name, value, false) FROM (VALUES
  ('lock_timeout', '0'), ('transaction_timeout', '0'), ('idle_session_timeout', '0'),
  ('idle_in_transaction_session_timeout', '0'), ('default_transaction_isolation', 'read committed'),
  ('default_transaction_deferrable', 'off'), ('DateStyle', 'ISO'),
  ('synchronous_commit', replace(current_setting('synchronous_commit'), 'off', 'on'))
) AS ours (name, value) WHERE current_setting(name, true) IS NOT NULL
"""

NOT_WRITABLE = (
    "the database takes no writes: it is a standby, or default_transaction_read_only is on. Give the address of the "
    "primary, or all hosts and target_session_attrs=read-write, or switch the setting off"
)


class NotWritable(psycopg.OperationalError):
    """A connection was made, and nothing can be written on it."""


def connect(uri: str) -> Connection:
    connection = psycopg.connect(**read_address(uri), autocommit=True)
    connection.prepared_max = MAX_PREPARED
    try:
        connection.execute(_SESSION)
    except BaseException:
        connection.close()
        raise
    arrays.register(connection)
    return connection


def is_writable(connection: Connection) -> bool:
    return connection.execute("SELECT current_setting('transaction_read_only')").fetchone() == ("off",)


def hang_up(connection: Connection) -> None:
    """Cut the connection, from any thread: a thread that waits for the server on it gets an error at once."""
    with (
        contextlib.suppress(psycopg.OperationalError, OSError),  # it is closed already
        socket.socket(fileno=os.dup(connection.fileno())) as wire,
    ):
        wire.shutdown(socket.SHUT_RDWR)


# The driver's text around these has hosts, ports and paths in it, and the sender of a request sees the message.
_REASONS = (
    "Connection refused",
    "No such file or directory",
    "timeout expired",
    "resolve host",
    "password authentication failed",
    "does not exist",
    "too many clients",
    "starting up",
    "shutting down",
    "terminating connection",
    "server closed the connection",
    "the connection is closed",
    "the connection is lost",
)


def unreachable(error: Exception) -> str:
    """Say that the server is out of reach, without its address; the log has the driver's whole text."""
    said = str(error)
    if isinstance(error, NotWritable):
        return said
    reason = next((reason for reason in _REASONS if reason in said), type(error).__name__)
    return f"the store can't be reached ({reason}); check the setting store, and whether the database runs"


class PostgresConnections:
    def __init__(self, uri: str) -> None:
        read_address(uri)  # one that can't be read is refused at once
        self._uri = uri
        self._open: WeakSet[Connection] = WeakSet()
        self._changing = threading.Lock()
        self._is_cut = False

    def connect(self) -> Connection:
        """Raises Fatal once everything was cut."""
        connection = None if self._is_cut else connect(self._uri)
        with self._changing:
            if connection is not None and not self._is_cut:
                self._open.add(connection)
                return connection
        if connection is not None:
            connection.close()
        raise Fatal("the store was closed")

    def connect_patiently(self, closing: threading.Event) -> Connection:
        """Connect to write, with growing pauses for as long as it takes; Fatal when the store closes meanwhile."""
        pause, failures = FIRST_PAUSE_SECONDS, 0
        while True:
            try:
                return self._connect_to_write()
            except psycopg.OperationalError as error:
                if failures % _TOLD_EVERY == 0:
                    log.warning("database_unreachable", error=str(error), note="it is tried again, every second")
                if closing.wait(pause):
                    raise Fatal(unreachable(error)) from error
                pause, failures = min(pause * 2, MAX_PAUSE_SECONDS), failures + 1

    def serve_patiently(self, ending: threading.Event, serve: Callable[[Connection], None], who: str) -> None:
        """Call `serve` with a connection, and with another one when that is lost, until `ending` is set."""
        while not ending.is_set():
            try:
                with contextlib.closing(self.connect_patiently(ending)) as connection:
                    serve(connection)
            except Fatal:
                return
            except Exception as error:  # noqa: BLE001 - nobody would start this thread again
                log.warning("connection_lost", who=who, error=repr(error))
                ending.wait(AFTER_LOSS_SECONDS)

    def _connect_to_write(self) -> Connection:
        connection = self.connect()
        if is_writable(connection):
            return connection
        connection.close()
        raise NotWritable(NOT_WRITABLE)

    def cut(self) -> None:
        """Free every thread that waits for the server. No connection is made any more."""
        with self._changing:
            self._is_cut = True
            for connection in list(self._open):
                hang_up(connection)
