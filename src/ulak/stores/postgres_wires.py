"""The connections of one store: made with patience, and cut at its end if the server does not answer on them."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from typing import Any
from weakref import WeakSet

import psycopg

from ulak.stores import postgres_arrays
from ulak.stores.session import Fatal

Connection = psycopg.Connection[tuple[Any, ...]]

FIRST_PAUSE_SECONDS = 0.02
LONGEST_PAUSE_SECONDS = 1.0


def connect(uri: str) -> Connection:
    connection = psycopg.connect(uri, autocommit=True, connect_timeout=5, application_name="ulak")
    postgres_arrays.register(connection)
    return connection


def hang_up(connection: Connection) -> None:
    """From any thread: whoever waits for the server on this connection gets an error at once."""
    with (
        contextlib.suppress(psycopg.OperationalError, OSError),  # it is closed already
        socket.socket(fileno=os.dup(connection.fileno())) as wire,
    ):
        wire.shutdown(socket.SHUT_RDWR)


class Wires:
    def __init__(self, uri: str) -> None:
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
        """Connect with growing pauses for as long as it takes; raises Fatal when the store closes meanwhile."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                return self.connect()
            except psycopg.OperationalError as error:
                if closing.wait(pause):
                    raise Fatal(f"the database can't be reached: {error}") from error
                pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

    def cut(self) -> None:
        """Free every thread that waits for the server. No connection is made any more."""
        with self._changing:
            self._is_cut = True
            for connection in list(self._open):
                hang_up(connection)
