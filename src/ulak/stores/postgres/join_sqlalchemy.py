"""SQLAlchemy's connections and sessions, blocking and asynchronous. Imported only when one is given."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from ulak.errors import Conflict, Misconfigured, Unavailable
from ulak.stores.postgres.join import Answer, Rows, Steps, as_named, drive, in_thread, is_from


async def run(connection: Any, plan: Steps) -> Answer:
    try:
        if is_from(connection, "sqlalchemy.ext.asyncio"):
            return await _run_async(connection, plan)
        if isinstance(connection, Session):
            connection = connection.connection()
        if isinstance(connection, Connection):
            return await in_thread(_run, connection, plan)
    except DBAPIError as error:
        raise _translated(error) from error
    raise Misconfigured(f"a {type(connection).__name__} can't carry a job; give a connection or a session")


async def _run_async(connection: Any, plan: Steps) -> Answer:
    # Not at the top: it needs greenlet, which a program with blocking connections only need not have.
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession

    if isinstance(connection, AsyncSession):
        connection = await connection.connection()
    if not isinstance(connection, AsyncConnection):
        raise Misconfigured(f"a {type(connection).__name__} can't carry a job; give a connection or a session")
    return await connection.run_sync(_run, plan)


def _run(connection: Connection, plan: Steps) -> Answer:
    if connection.dialect.name != "postgresql":
        raise Misconfigured(f"the given connection is to {connection.dialect.name}; the store is on PostgreSQL")
    if getattr(connection.connection.dbapi_connection, "autocommit", False):
        raise Misconfigured("the connection is in AUTOCOMMIT mode, so there is no transaction to join; begin one")

    def execute(statement: str, values: dict[str, Any]) -> Rows:
        return [tuple(row) for row in connection.execute(text(as_named(statement)), values).fetchall()]

    return drive(plan, execute)


def _translated(error: DBAPIError) -> Exception:
    state = getattr(error.orig, "sqlstate", None) or getattr(error.orig, "pgcode", None)
    if state == "25P02":
        return Conflict("the transaction has failed already; roll it back and begin again")
    if state == "42P01":
        return Misconfigured("the given connection is to another database than the store, or to another schema in it")
    return Unavailable(f"the database failed in the caller's transaction: {error.orig}")
