"""Demands on the server, the database and the role: checked at every start; the refusal says how to mend it."""

from __future__ import annotations

from collections.abc import Callable

from ulak.errors import Misconfigured, Unavailable
from ulak.stores.migrate import Lines, tables
from ulak.stores.postgres.connections import NOT_WRITABLE, Connection, is_writable

OLDEST = 14  # it brought pg_terminate_backend's timeout, by which the fate of a lost commit is settled
_ROUNDS = 3

_SERVER = """
SELECT current_setting('server_version_num')::integer / 10000, getdatabaseencoding(), current_schema(), current_user,
       has_schema_privilege(current_schema(), 'CREATE'), to_regclass('schema_version') IS NOT NULL
"""
_LACKING = """
SELECT name FROM unnest(%s::text[]) AS name WHERE to_regclass(name) IS NOT NULL AND NOT (
  has_table_privilege(to_regclass(name), 'SELECT') AND has_table_privilege(to_regclass(name), 'INSERT')
  AND has_table_privilege(to_regclass(name), 'UPDATE') AND has_table_privilege(to_regclass(name), 'DELETE'))
"""


def check_place(connect: Callable[[], Connection], lines: Lines) -> None:
    """Refuse a place where Ulak can't work. Changes nothing."""
    with connect() as connection, connect() as other:
        check_sessions(connection, other)
        if not is_writable(connection):
            raise Unavailable(NOT_WRITABLE)
        _check_server(connection)
        _check_rights(connection, lines)


def check_sessions(one: Connection, other: Connection) -> None:
    """A pooler that lends backends by the transaction changes them under a session, or lends one to two."""
    own, others = _backend(one), _backend(other)
    for _ in range(_ROUNDS):
        # Twice in a row, for poolers that lend in turn; then the other, for those that lend the last one again.
        if not own == _backend(one) == _backend(one) != others == _backend(other):
            raise Misconfigured(
                "the address leads to a pooler that lends connections by the transaction, where LISTEN, session locks "
                "and prepared statements don't hold; set its pool_mode to session, or give the server's own address"
            )


def _backend(connection: Connection) -> int:
    ((pid,),) = connection.execute("SELECT pg_backend_pid()", prepare=False).fetchall()
    return int(pid)


def _check_server(connection: Connection) -> None:
    ((version, encoding, schema, role, may_create, is_filled),) = connection.execute(_SERVER).fetchall()
    if version < OLDEST:
        raise Misconfigured(f"the server is PostgreSQL {version}, Ulak needs {OLDEST} or newer; upgrade the server")
    if encoding != "UTF8":
        raise Misconfigured(
            f"the database has the encoding {encoding}, Ulak needs UTF8; make another one: "
            f"CREATE DATABASE ulak ENCODING 'UTF8' TEMPLATE template0"
        )
    if schema is None:
        raise Misconfigured(
            f"the search path of the role {role} leads to no schema that exists and that it may use; "
            f'set search_path, or run as its owner: GRANT USAGE, CREATE ON SCHEMA public TO "{role}"'
        )
    if not (may_create or is_filled):
        raise Misconfigured(
            f"there are no tables of Ulak in the schema {schema}, and the role {role} may not make them; as its owner "
            f'run: GRANT CREATE ON SCHEMA "{schema}" TO "{role}". Or run ulak db migrate as a role that may'
        )


def _check_rights(connection: Connection, lines: Lines) -> None:
    lacking = [name for (name,) in connection.execute(_LACKING, (tables(lines, "postgres"),)).fetchall()]
    if lacking:
        names = ", ".join(lacking)
        role = connection.info.user
        raise Misconfigured(
            f"the role {role} lacks rights on {names}; as their owner run: "
            f'GRANT SELECT, INSERT, UPDATE, DELETE ON {names} TO "{role}"'
        )
