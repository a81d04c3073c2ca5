"""The limit of PostgreSQL itself: two connections, unnest inserts, SKIP LOCKED claims, whole batches, no queue."""

from __future__ import annotations

import json
import threading
import time

import psycopg

from bench.load import CLAIMED, PAYLOAD, WARMUP_SECONDS, spread
from bench.postgres_server import settle_down

SCHEMA = """
CREATE TABLE job (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    state smallint NOT NULL DEFAULT 0,
    payload bytea NOT NULL
) WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX job_ready ON job (id) WHERE state = 0;
"""
INSERT = "INSERT INTO job (payload) SELECT payload FROM unnest(%s::bytea[]) AS row (payload)"
CLAIM = """
UPDATE job SET state = 1 WHERE id = ANY(ARRAY(
    SELECT id FROM job WHERE state = 0 ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED)) RETURNING id, payload
"""
DELETE = "DELETE FROM job WHERE id = ANY(%s)"
FILL = "INSERT INTO job (state, payload) SELECT number %% 2, %s FROM generate_series(1, %s) AS number"
BODY = json.dumps(PAYLOAD).encode()
Connection = psycopg.Connection[tuple[int, bytes]]


def enqueue(uri: str, batch: int, seconds: float) -> float:
    """Durable inserts per second, one statement for a batch: what that many waiting producers could get at best."""
    with _open(uri) as connection:
        _create(connection)
        begins = time.perf_counter() + WARMUP_SECONDS
        counted = 0
        while (now := time.perf_counter()) < begins + seconds:
            connection.execute(INSERT, ([BODY] * batch,))
            counted += batch * (now >= begins)
        return counted / (time.perf_counter() - begins)


def end_to_end(uri: str, batch: int, jobs: int) -> float:
    """Jobs per second, one connection inserting batches while another claims and deletes them."""
    with _open(uri) as inserting, _open(uri) as working:
        _create(inserting)
        begins = time.perf_counter()
        producer = threading.Thread(target=_insert, args=(inserting, batch, jobs), daemon=True)
        producer.start()
        _work(working, batch, jobs)
        return jobs / (time.perf_counter() - begins)


def drain(uri: str, batch: int, jobs: int) -> float:
    """Jobs per second from a table that was filled before."""
    with _open(uri) as connection:
        _create(connection)
        _insert(connection, 1_000, jobs)
        begins = time.perf_counter()
        _work(connection, batch, jobs)
        return jobs / (time.perf_counter() - begins)


def claim(uri: str, waiting: int, claims: int) -> list[float]:
    """Milliseconds of each claim of 100, without begin and commit, from a table of which half is ready."""
    took = []
    with _open(uri) as connection:
        _create(connection)
        connection.execute(FILL, (BODY, waiting))
        settle_down(uri)
        cursor = connection.cursor(binary=True)
        for _ in spread(claims):
            connection.execute("BEGIN")
            begins = time.perf_counter()
            found = cursor.execute(CLAIM, (CLAIMED,), prepare=True).fetchall()
            took.append((time.perf_counter() - begins) * 1000)
            connection.execute("COMMIT")
            assert len(found) == CLAIMED
    return took


def _open(uri: str) -> Connection:
    connection = psycopg.Connection.connect(uri, autocommit=True)
    # the same pin as every claim on a queue table needs: a plan made on the empty table must not stay
    for switch in ("seqscan", "bitmapscan", "sort", "hashjoin", "mergejoin"):
        connection.execute(f"SET enable_{switch} = off")
    return connection


def _create(connection: Connection) -> None:
    for statement in SCHEMA.strip().rstrip(";").split(";\n"):
        connection.execute(statement)


def _insert(connection: Connection, batch: int, jobs: int) -> None:
    for start in range(0, jobs, batch):
        connection.execute(INSERT, ([BODY] * min(batch, jobs - start),))


def _work(connection: Connection, batch: int, jobs: int) -> None:
    left = jobs
    while left:
        rows = connection.execute(CLAIM, (batch,)).fetchall()
        if rows:
            connection.execute(DELETE, ([row[0] for row in rows],))
            left -= len(rows)
