"""SQLite's plans where statistics are those of a small list, as a connection knows them that was opened after one."""

from __future__ import annotations

import json
import sqlite3

import pytest

from ulak.changes import records
from ulak.rooms import LINES
from ulak.stores.migrate import migrate_sqlite

SMALL = [("changes_version", "changes_version_key", "20 20 1 1"), ("changes_version", "changes_version", "20 20 1")]


@pytest.fixture
def small(tmp_path):
    with sqlite3.connect(tmp_path / "ulak.db", isolation_level=None) as connection:
        migrate_sqlite(connection, LINES, 0)
        connection.execute("ANALYZE")
        connection.executemany("INSERT INTO sqlite_stat1 VALUES (?, ?, ?)", SMALL)
        connection.execute("ANALYZE sqlite_schema")  # reads them
    yield connection
    connection.close()


def test_records_are_found_by_their_keys_and_not_by_walking_the_feed(small):
    given = {"feed": "einvoice", "keys": json.dumps(["00a"]), "head": 9}
    plan = [row[3] for row in small.execute(f"EXPLAIN QUERY PLAN {records.sql.find_records.sqlite}", given)]
    assert plan[0] == "SEARCH v USING PRIMARY KEY (feed=? AND pos=?)"
    assert not any("BLOOM" in step for step in plan)
