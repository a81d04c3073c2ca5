"""The limit of SQLite itself: one connection, WAL, synchronous=FULL, whole batches, no queue around it."""

from __future__ import annotations

import json
import random
import sqlite3
import time
from contextlib import closing

from bench.load import CLAIMED, PAYLOAD, SEED, WARMUP_SECONDS, spread

SCHEMA = """
CREATE TABLE job (id INTEGER PRIMARY KEY, state INTEGER NOT NULL, payload BLOB NOT NULL);
CREATE INDEX job_ready ON job (id) WHERE state = 0;
"""
INSERT = "INSERT INTO job (id, state, payload) VALUES (?, 0, ?)"
CLAIM = """
UPDATE job SET state = 1 WHERE id IN (SELECT id FROM job INDEXED BY job_ready WHERE state = 0 ORDER BY id LIMIT ?)
RETURNING id, payload
"""
DELETE = "DELETE FROM job WHERE id = ?"
BODY = json.dumps(PAYLOAD).encode()


def enqueue(path: str, batch: int, seconds: float) -> float:
    """Durable inserts per second, one commit for a batch: what that many waiting producers could get at best."""
    with closing(_open(path)) as connection:
        begins = time.perf_counter() + WARMUP_SECONDS
        last = counted = 0
        while (now := time.perf_counter()) < begins + seconds:
            last = _insert(connection, last, batch)
            counted += batch * (now >= begins)
        return counted / (time.perf_counter() - begins)


def claim_and_delete(path: str, batch: int, jobs: int) -> float:
    """Jobs per second: claim a batch, commit, delete it, commit, from a table that was filled before."""
    with closing(_open(path)) as connection:
        _insert(connection, 0, jobs)
        begins = time.perf_counter()
        while rows := _claim(connection, batch):
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(DELETE, [row[:1] for row in rows])
            connection.execute("COMMIT")
        return jobs / (time.perf_counter() - begins)


def claim(path: str, waiting: int, claims: int) -> list[float]:
    """Milliseconds of each claim of 100, without begin and commit, from a table of which half is ready."""
    took = []
    with closing(_open(path)) as connection:
        _insert(connection, 0, waiting)
        connection.execute("UPDATE job SET state = 2 WHERE id % 2")
        for _ in spread(claims):
            connection.execute("BEGIN IMMEDIATE")
            begins = time.perf_counter()
            found = connection.execute(CLAIM, (CLAIMED,)).fetchall()
            took.append((time.perf_counter() - begins) * 1000)
            connection.execute("COMMIT")
            assert len(found) == CLAIMED
    return took


def commits(path: str, times: int) -> list[float]:
    """Milliseconds of one insert and its commit, one at a time and with pauses: what the disk takes of a wake-up."""
    gaps, took = random.Random(SEED), []
    with closing(_open(path)) as connection:
        for last in range(times):
            time.sleep(gaps.uniform(0.001, 0.004))
            begins = time.perf_counter()
            _insert(connection, last, 1)
            took.append((time.perf_counter() - begins) * 1000)
    return took


def _open(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.executescript(SCHEMA)
    return connection


def _insert(connection: sqlite3.Connection, last: int, count: int) -> int:
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(INSERT, [(last + offset + 1, BODY) for offset in range(count)])
    connection.execute("COMMIT")
    return last + count


def _claim(connection: sqlite3.Connection, batch: int) -> list[tuple[int, bytes]]:
    connection.execute("BEGIN IMMEDIATE")
    rows = connection.execute(CLAIM, (batch,)).fetchall()
    connection.execute("COMMIT")
    return rows
