"""Helpers around a place, tasks of all states, their offers, lists of candidates and decisions."""

from __future__ import annotations

from tests.plans.measure import EVERY, FEW, NEW, OLD, Parameters, rows
from ulak.dispatch.nearby.geo import chord_of, point_at, ranges_around

HERE = point_at(41.0, 29.0)
_RANGES = ranges_around(HERE, 1000.0)
FILL = [
    f"""
INSERT INTO dispatch_helper
SELECT n, 'h' || n, NULL, 1, CASE WHEN n % 4 = 0 THEN 2 WHEN n % 4 = 1 THEN 1 ELSE 0 END, 41000000000, 29000000000,
  {HERE.x}, {HERE.y}, {HERE.z}, {HERE.cell} + (n - 10000) * 8796093022208, 1, '[]', NULL, 'IN_APP', 'x', 0, 0, 0, 0, 0
{EVERY}""",
    f"""
INSERT INTO dispatch_task
SELECT n, 'r' || n % 100, 'c', 0, 0, 1000000, 600000, 1, n, NULL, '[]', NULL, 'IN_APP', 'x',
  CASE WHEN n % 4 = 0 THEN 'ASSIGNED' WHEN n % 4 = 1 THEN 'OFFERED' ELSE 'COMPLETED' END,
  CASE WHEN n % 4 <> 1 THEN n END, CASE WHEN n % 4 <> 1 THEN 'h' || n END, 1, 2, n, 0, 0,
  CASE WHEN n % 4 <> 1 THEN n END, CASE WHEN n % 4 > 1 THEN n END, NULL, CASE WHEN n % 5 = 0 THEN 'o' || n END, NULL
{EVERY}""",
    f"""
INSERT INTO dispatch_offer
SELECT n, n, n, CASE WHEN n % 4 = 1 THEN 'OPEN' ELSE 'ACCEPTED' END, n, n, 0, n, n, CASE WHEN n % 4 <> 1 THEN n END,
  NULL, NULL {EVERY}""",
    f"INSERT INTO dispatch_candidate SELECT n, 0, '\\x90' {EVERY}",
    f"INSERT INTO dispatch_decision SELECT n, 0, 0, 0, 0, '\\x90', '{{}}' {EVERY}",
]
_SPANS: Parameters = {"low": [one.low for one in _RANGES], "high": [one.high for one in _RANGES]}
_HELPER = {
    "name": None, "active": 1, "doing": 0, "skills": "[]", "language": None, "contact_type": "IN_APP", "contact": "x",
    "month": 0, "completed": 0, "expired": 0, "timeouts": 0, "served_at": 0,
}  # fmt: skip
_PLACE = {"latitude": 0, "longitude": 0, "cell": HERE.cell, "x": 0, "y": 0, "z": 0, "position_at": 5}
_PROGRESS = {
    "helper": None, "helper_name": None, "searches": 1, "max_searches": 2, "searched_at": 5, "place": 0, "timer": 0,
    "assigned_at": None, "ended_at": None, "reason": None,
}  # fmt: skip
STATEMENTS: dict[str, Parameters] = {
    "count_answers": {"n": 100},
    "count_live_tasks": {},
    "count_shares": {"month": 0, "pause_after": 3},
    "delete_helpers": {"ids": FEW},
    "find_known": {"names": [f"h{one}" for one in FEW]},
    "find_old_tasks": {"before": 50, "n": 10},
    "find_once": {"marks": ["o10000", "o10005"]},
    "find_overdue": {"now": 1},
    "flush_positions": rows(id=FEW, **_PLACE),
    "insert_candidates": rows(task=NEW, search=0, list=b""),
    "insert_decisions": rows(task=NEW, search=0, at=5, radius=1, found=1, excluded=b"", counts="{}"),
    "insert_helpers": rows(id=NEW, helper=[f"h{one}" for one in NEW], **_HELPER, **_PLACE),
    "insert_offers": rows(
        id=NEW, task=NEW, helper=NEW, state="OPEN", opened_at=5, deadline_at=9, distance=1, timer=1, message=1,
        ended_at=None, released_at=None, reason=None,
    ),
    "insert_tasks": rows(
        id=NEW, requester="r7", category="c", latitude=0, longitude=0, radius=1, deadline=1, width=1, created_at=5,
        description=None, skills="[]", language=None, contact_type="IN_APP", contact="x", state="SEARCHING",
        once=None, digest=None, trace=None, **_PROGRESS,
    ),
    "keep_plan": {},
    "list_asked": {"task": 5},
    "list_helpers": {"after": "h5", "status": "BUSY", "pause_after": 3, "n": 10},
    "list_helpers_within": _SPANS
    | {
        "after": "", "status": None, "pause_after": 3, "south": 40_000_000_000, "north": 42_000_000_000,
        "west": 28_000_000_000, "east": 30_000_000_000, "n": 10,
    },
    "list_open_offers": {"helper": 5},
    "list_overdue": {"before": 100, "n": 10},
    "list_pending": {"tasks": FEW},
    "list_searches": {"task": 5},
    "list_tasks": {"before": 15_000, "n": 10},
    "list_tasks_by_helper": {"helper": "h8", "requester": None, "state": None, "before": 15_000, "n": 10},
    "list_tasks_by_requester": {"requester": "r7", "state": None, "before": 15_000, "n": 10},
    "list_tasks_by_state": {"state": "OFFERED", "before": 15_000, "n": 10},
    "list_waits": {"n": 100},
    "load_candidates": rows(tasks=FEW, searches=0),
    "load_offers": {"tasks": FEW},
    "lock_helpers": {"ids": FEW},
    "lock_tasks": {"ids": FEW},
    "prune_candidates": {"ids": OLD},
    "prune_decisions": {"ids": OLD},
    "prune_offers": {"ids": OLD},
    "prune_tasks": {"ids": OLD},
    "read_helper": {"helper": "h7"},
    "read_task": {"id": 7},
    "search_circle": _SPANS
    | {
        "x": HERE.x, "y": HERE.y, "z": HERE.z, "chord": chord_of(1000), "month": 0, "weight": 1, "pause_after": 3,
        "fresh_from": 0, "skills": [], "asked": [], "n": 1000, "shown": 50,
    },
    "update_helpers": rows(id=FEW, **_HELPER),
    "update_offers": rows(id=FEW, state="EXPIRED", ended_at=5, released_at=5, reason=None, before="OPEN"),
    "update_tasks": rows(id=FEW, state="TIMED_OUT", before="OFFERED", **_PROGRESS),
}  # fmt: skip
READS = {"list_open_offers"}
