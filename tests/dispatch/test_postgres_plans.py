"""PostgreSQL: dispatch's plans that were made on empty tables must still be right when the tables are full."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from tests.postgres_plans import Prepared, fill, vacuum_by_hand
from tests.postgres_server import server
from ulak.dispatch.nearby.geo import chord_of, point_at, ranges_around
from ulak.dispatch.records import sql
from ulak.stores.postgres.reader import READER_SETTINGS
from ulak.stores.postgres.session import _SETTINGS

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

TABLES = ("dispatch_helper", "dispatch_task", "dispatch_offer", "dispatch_candidate", "dispatch_decision")
HERE = point_at(41.0, 29.0)
LITTLE = 30.0  # blocks per row: index pages, the row, its old and its new place

FILL = [
    f"""
INSERT INTO dispatch_helper
SELECT n, 'h' || n, NULL, 1, CASE WHEN n % 4 = 0 THEN 2 WHEN n % 4 = 1 THEN 1 ELSE 0 END, 41000000000, 29000000000,
  {HERE.x}, {HERE.y}, {HERE.z}, {HERE.cell} + (n - 50000) * 8796093022208, 1, '[]', NULL, 'IN_APP', 'x', 0, 0, 0, 0, 0
FROM generate_series(1, 100000) AS n""",
    """
INSERT INTO dispatch_task
SELECT n, 'r' || n % 100, 'c', 0, 0, 1000000, 600000, 1, n, NULL, '[]', NULL, 'IN_APP', 'x',
  CASE WHEN n % 4 = 0 THEN 'ASSIGNED' WHEN n % 4 = 1 THEN 'OFFERED' ELSE 'COMPLETED' END,
  CASE WHEN n % 4 <> 1 THEN n END,
  CASE WHEN n % 4 <> 1 THEN 'h' || n END, 1, 2, n, 0, 0, NULL, CASE WHEN n % 4 > 1 THEN n END, NULL, NULL, NULL
FROM generate_series(1, 100000) AS n""",
    """
INSERT INTO dispatch_offer
SELECT n, n, n, CASE WHEN n % 4 = 1 THEN 'OPEN' ELSE 'ACCEPTED' END, n, n, 0, n, n,
  CASE WHEN n % 4 <> 1 THEN n END, NULL, NULL
FROM generate_series(1, 100000) AS n""",
    "INSERT INTO dispatch_candidate SELECT n, 0, '\\x90' FROM generate_series(1, 100000) AS n",
    "INSERT INTO dispatch_decision SELECT n, 0, 0, 0, 0, '\\x90', '{}' FROM generate_series(1, 100000) AS n",
]


IDS = list(range(1, 201, 4))
MANY = [0] * len(IDS)
WRITES: dict[str, dict[str, Any]] = {
    "lock_tasks": {"ids": IDS},
    "lock_helpers": {"ids": IDS},
    "load_offers": {"tasks": IDS},
    "load_candidates": {"tasks": IDS, "searches": MANY},
    "find_known": {"names": [f"h{one}" for one in IDS]},
    "find_once": {"marks": ["a", "b"]},
    "update_offers": {
        "id": IDS, "state": ["EXPIRED"] * 50, "ended_at": MANY, "released_at": MANY, "reason": [None] * 50,
        "before": ["OPEN"] * 50,
    },
    "update_tasks": {
        "id": IDS, "state": ["TIMED_OUT"] * 50, "helper": [None] * 50, "helper_name": [None] * 50, "searches": MANY,
        "max_searches": MANY, "searched_at": MANY, "place": MANY, "timer": MANY, "assigned_at": [None] * 50,
        "ended_at": MANY, "reason": [None] * 50, "before": ["OFFERED"] * 50,
    },
    "update_helpers": {
        "id": IDS, "name": [None] * 50, "active": MANY, "doing": MANY, "skills": ["[]"] * 50, "language": [None] * 50,
        "contact_type": ["IN_APP"] * 50, "contact": ["x"] * 50, "month": MANY, "completed": MANY, "expired": MANY,
        "timeouts": MANY, "served_at": MANY,
    },
    "flush_positions": {
        "id": IDS, "latitude": MANY, "longitude": MANY, "cell": [HERE.cell] * 50, "x": MANY, "y": MANY, "z": MANY,
        "position_at": [5] * 50,
    },
    "find_overdue": {"now": 1},
}  # fmt: skip
_RANGES = ranges_around(HERE, 1000.0)
SEARCHES: dict[str, dict[str, Any]] = {
    "search_circle": {
        "low": [one.low for one in _RANGES], "high": [one.high for one in _RANGES], "x": HERE.x, "y": HERE.y,
        "z": HERE.z, "chord": chord_of(1000), "month": 0, "weight": 1, "pause_after": 3, "fresh_from": 0,
        "skills": [], "asked": [], "n": 1000, "shown": 50,
    },
    "list_asked": {"task": 5},
}  # fmt: skip
READS: dict[str, dict[str, Any]] = {
    "list_tasks": {"before": 90_000, "n": 50},
    "list_tasks_by_state": {"state": "OFFERED", "before": 90_000, "n": 50},
    "list_tasks_by_requester": {"requester": "r7", "state": None, "before": 90_000, "n": 50},
    "list_tasks_by_helper": {"helper": "h8", "requester": None, "state": None, "before": 90_000, "n": 50},
    "list_pending": {"tasks": IDS},
    "list_open_offers": {"helper": 5},
    "list_searches": {"task": 5},
    "find_old_tasks": {"before": 50, "n": 50},
}  # fmt: skip


@pytest.fixture
def address():
    with server().new_database() as found:
        vacuum_by_hand(found, TABLES)
        yield found


@pytest.mark.parametrize("analyzed", ["never analyzed", "analyzed when empty", "analyzed when full"])
@pytest.mark.parametrize("side", ["writes", "reads", "searches"])
def test_plans_made_on_empty_tables_are_cheap_on_full_ones(address: str, side: str, analyzed: str):
    statements = {"writes": WRITES, "reads": READS, "searches": SEARCHES}[side]
    with contextlib.closing(Prepared(address, _SETTINGS if side == "writes" else READER_SETTINGS, sql)) as prepared:
        if side == "searches":
            prepared.connection.execute("SET plan_cache_mode = force_generic_plan")  # as keep_plan does
        costs = _costs(address, prepared, statements, analyzed)
    assert {name: cost for name, cost in costs.items() if cost > LITTLE} == {}


def _costs(address: str, prepared: Prepared, statements: dict[str, dict[str, Any]], analyzed: str) -> dict[str, float]:
    if analyzed == "analyzed when empty":
        prepared.connection.execute(f"VACUUM ANALYZE {', '.join(TABLES)}".encode())
    prepared.prepare(statements)
    fill(address, FILL)
    if analyzed == "analyzed when full":
        prepared.connection.execute(f"ANALYZE {', '.join(TABLES)}".encode())
    measured = {name: prepared.measure(name, **parameters) for name, parameters in statements.items()}
    return {name: blocks / max(rows, 50) for name, (blocks, rows) in measured.items()}
