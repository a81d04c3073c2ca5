"""PostgreSQL: every statement of every room is understood, and its plan, made on empty tables, walks over none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import ulak
from tests.plans.measure import packages, statements
from tests.plans.walks import SMALL, WALKS
from tests.postgres_server import server
from ulak.rooms import LINES
from ulak.spine.query import Query
from ulak.stores.migrate import Line, migrations
from ulak.stores.postgres.arrays import packers
from ulak.stores.postgres.connections import connect
from ulak.stores.postgres.reader import READER_SETTINGS
from ulak.stores.postgres.session import _SETTINGS

pytestmark = pytest.mark.postgres


def named_statements() -> Iterator[tuple[str, Query]]:
    for package in packages():
        yield from ((f"{package}.{query.name}", query) for query in statements(package))


@pytest.fixture(scope="module")
def database():
    """With the tables of every package, also of a room that no list of rooms has yet."""
    with server().new_database() as address:
        known = {line.package for line in LINES}
        with psycopg.connect(address, autocommit=True) as connection:
            for package in sorted(set(packages()) - known):
                for one in migrations(Line(package, package), "postgres"):
                    connection.execute(one.script.encode())
        yield address


def test_every_statement_is_understood(database):
    connection = connect(database)
    found = dict(named_statements())
    assert "ulak.spine.claim_jobs" in found
    wrong = [name for name, query in found.items() if not _is_understood(connection, query) and _is_used(name)]
    connection.close()
    assert wrong == []


def _is_used(name: str) -> bool:
    """By anything but SQLite's own session."""
    last = name.rpartition(".")[2]
    sources = [path for path in Path(ulak.__path__[0]).rglob("*.py") if not path.name.startswith("sqlite")]
    return any(re.search(rf"\bsql\.{last}\b", path.read_text()) for path in sources)


def _is_understood(connection: psycopg.Connection[Any], query: Query) -> bool:
    arrays = packers(query.postgres)
    parameters = {each: arrays[each]([]) if each in arrays else None for each in query.postgres_parameters}
    connection.execute("BEGIN")
    try:
        connection.execute(query.postgres.encode(), parameters, prepare=True)
    except (psycopg.IntegrityError, psycopg.DataError):
        return True  # nothing but nulls: it was understood and refused
    except psycopg.ProgrammingError:
        return False
    finally:
        connection.execute("ROLLBACK")
    return True


@pytest.mark.parametrize("settings", [_SETTINGS.encode(), READER_SETTINGS], ids=["writer", "reader"])
def test_no_statement_walks_over_a_table_that_grows(database, settings):
    """The writers' planner has no choice: an index that orders is taken before one that finds. This shows which."""
    connection = connect(database)
    connection.execute(settings)
    walks = {name: found for name, query in named_statements() if (found := sorted(_walks(connection, query)))}
    connection.close()
    assert {name: found for name, found in walks.items() if name not in WALKS} == {}
    assert sorted(set(WALKS) - set(dict(named_statements()))) == []


def _walks(connection: psycopg.Connection[Any], query: Query) -> set[str]:
    names = query.postgres_parameters
    text = re.sub(r"%\((\w+)\)s", lambda found: f"${names.index(found[1]) + 1}", query.postgres).replace("%%", "%")
    try:
        rows = connection.execute(f"EXPLAIN (GENERIC_PLAN, FORMAT JSON) {text}".encode()).fetchall()
    except psycopg.ProgrammingError:  # the other test says so
        return set()
    return {table for table in _walked(rows[0][0][0]["Plan"], limited=False) if table not in SMALL}


def _walked(node: dict[str, Any], *, limited: bool) -> Iterator[str]:
    """Tables that are read from end to end: without an index, or along one without a condition or a limit."""
    kind = node["Node Type"]
    limited = limited or kind == "Limit"
    if kind == "Seq Scan" or (kind.startswith("Index") and "Index Cond" not in node and not limited):
        yield node["Relation Name"]
    for child in node.get("Plans", ()):
        yield from _walked(child, limited=limited)
