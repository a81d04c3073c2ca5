"""PostgreSQL: plans of notify, channels, changes and actions that were made on empty tables are right on full ones.

Dispatch's are in its own folder.
"""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

import pytest

from tests.postgres_plans import Prepared, fill, vacuum_by_hand
from tests.postgres_server import server
from ulak.spine.query import Queries
from ulak.stores.postgres.reader import READER_SETTINGS
from ulak.stores.postgres.session import _SETTINGS

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

ROWS = 40_000
LITTLE = 40  # blocks per row: index pages, the row, its old and its new place
FEW = list(range(20_001, 20_041, 4))
N = len(FEW)
EVERY = f"FROM generate_series(1, {ROWS}) AS n ON CONFLICT DO NOTHING"  # preparing keeps some rows
SOME = EVERY.replace(str(ROWS), "1000")

Statements = dict[str, dict[str, Any]]


class Plans(NamedTuple):
    tables: tuple[str, ...]
    fills: list[str]
    writes: Statements
    reads: Statements
    by_statistics: frozenset[str] = frozenset()  # those that are right once the full tables were analyzed


NOTIFY = Plans(
    ("notify_idempotency", "notify_inbox", "notify_reference", "notify_attempt"),
    [
        f"INSERT INTO notify_idempotency SELECT 'k' || n, 'h', n, n {EVERY}",
        (
            f"INSERT INTO notify_inbox SELECT n, 'r' || n % 1000, NULL, repeat('b', 100), '{{}}', n, n, "
            f"CASE WHEN n % 3 = 0 THEN n END {EVERY}"
        ),
        f"INSERT INTO notify_reference SELECT 'order' || n % 1000, n {EVERY}",
        f"INSERT INTO notify_attempt SELECT n, 'http://h/' || n % 1000, n, 1, n, 1, 200, NULL {EVERY}",
    ],
    {
        "find_idempotency": {"keys": [f"k{n}" for n in FEW], "since": 0},
        "keep_idempotency": {"key": [f"k{n}" for n in FEW], "hash": ["g"] * N, "job": FEW, "at": FEW},
        "keep_reference": {"reference": ["order1"] * N, "job": FEW},
        "read_inbox": {"recipient": "r7", "id": 7},
        "mark_read": {"recipient": "r7", "now": 1, "id": 7},
        "prune_attempts": {"before": 10, "n": 10},
        "prune_idempotency": {"before": 10, "n": 10},
        "prune_inbox": {"before": 10, "n": 10},
        "prune_references": {"before": 10, "n": 10},
    },
    {
        "list_inbox": {"recipient": "r8", "before": 30_000, "unread": 0, "n": 10},
        "count_unread": {"recipient": "r8"},
        "find_references": {"reference": "order8", "before": 30_000, "n": 10},
        "list_attempts": {"url": "http://h/8", "before": 30_000, "n": 10},
        "count_attempts": {"since": ROWS - 10},
    },
)
CHANNELS = Plans(
    ("channels_endpoint",),
    [f"INSERT INTO channels_endpoint SELECT 'http://h/' || n, repeat('s', 100), NULL, NULL, 0 {EVERY}"],
    {
        "save_endpoint": {
            "url": "http://h/7", "secrets": "s", "disabled_at": None, "reason": None, "requires_secret": 0,
        },
        "delete_endpoint": {"url": "http://h/9"},
    },
    {"read_endpoint": {"url": "http://h/8"}},
)  # fmt: skip
CHANGES = Plans(
    ("changes_version", "changes_publication", "changes_sync", "changes_title"),
    [
        (f"INSERT INTO changes_version SELECT 'f', n, 'k' || lpad((n % 20000)::text, 5, '0'), 1, 1, '\\x00', NULL, "
        f"NULL, repeat('b', 100) {EVERY}"),
        f"INSERT INTO changes_publication SELECT 'f', n, n, n, 'list' {EVERY}",
        f"INSERT INTO changes_sync SELECT n, 'r' || n % 10, 'done', NULL, NULL, n, n, NULL, '{{}}', NULL, 0 {SOME}",
        f"INSERT INTO changes_title SELECT 'f', n, 'title ' || n {EVERY}",
    ],
    {
        "find_above": {"feed": "f", "head": ROWS - 10, "n": 10},
        "find_superseded": {"feed": "f", "start": 20_010, "end": 20_020},
        "delete_titles": {"feed": "f", "positions": list(range(1, 11))},
        "delete_versions": {"feed": "f", "positions": list(range(1, 11))},
        "delete_publications": {"feed": "f", "stamp": 10},
        "find_expired": {"feed": "f", "cutoff": 100},
        "release_held": {"registry": "r1"},
        "prune_syncs": {"before": 10},
    },
    {
        "find_records": {"feed": "f", "head": 30_000, "keys": [f"k{n % 20_000:05}" for n in FEW]},
        "find_position": {"feed": "f", "stamp": 30_000},
        "list_before": {"feed": "f", "positions": FEW},
        "list_publications": {"feed": "f", "start": 30_000, "n": 10},
        "list_records": {"feed": "f", "after": "k10000", "before": "l", "head": 30_000, "n": 10},
        "list_syncs": {"registry": "r1", "before": 900, "n": 10},
        "list_versions": {"feed": "f", "start": 30_000, "end": 30_010},
        "list_versions_of": {
            "feed": "f", "start": 100, "end": 39_000, "keys": [f"k{n % 20_000:05}" for n in FEW], "n": 10,
        },
        "read_sync": {"registry": "r1", "id": 21},
        "read_versions": {"feed": "f", "positions": FEW},
    },
    frozenset({"list_versions_of", "delete_publications"}),
)  # fmt: skip
ACTIONS = Plans(
    (
        "recipient_profiles", "recipient_channels", "action_plans", "action_plan_steps", "action_routes",
        "actions_run", "actions_step", "actions_former", "actions_sent",
    ),
    [
        f"INSERT INTO recipient_profiles SELECT n, 'd' || n, 'p', true, 1, NULL, NULL, n, n {EVERY}",
        f"INSERT INTO recipient_channels SELECT n, n, 'sms', 't', '{{}}', true, 'verified', n, n {EVERY}",
        f"INSERT INTO action_plans SELECT n, 'p', false, 1, n, n, NULL {EVERY}",
        (f"INSERT INTO action_plan_steps SELECT n, 1, 1, 'sms', NULL, NULL, 'b', 0, NULL, NULL, NULL, 'next', 'hold', "
        f"NULL {EVERY}"),
        f"INSERT INTO action_routes SELECT n, n, 1, n, NULL, true, n, n {EVERY}",
        (f"INSERT INTO actions_run SELECT n, 'e' || n, n, 1, CASE WHEN n % 10 = 0 THEN 'running' ELSE 'done' END, 't', "
        f"'d' || n, NULL, NULL, NULL, NULL, 0, '{{}}', n, CASE WHEN n % 10 > 0 THEN n END, NULL {EVERY}"),
        (f"INSERT INTO actions_step SELECT n, 1, 'sent', 'sms', n, n, n, n, n, 0, NULL, NULL, "
        f"CASE WHEN n % 10 = 1 THEN 'dead' END, 'm' || n, CASE WHEN n % 10 = 0 THEN n END, '[]', '', "
        f"CASE WHEN n % 10 > 0 THEN n END, NULL, 0 {EVERY}"),
        f"INSERT INTO actions_former SELECT n, n {EVERY}",
        f"INSERT INTO actions_sent SELECT n % 1000, n / 1000, 1, 1 {EVERY}",
    ],
    {
        "find_evaluations": {"keys": [f"e{n}" for n in FEW]},
        "find_plans": {"ids": FEW},
        "find_routed": {"plans": FEW, "devices": [f"d{n}" for n in FEW]},
        "find_device_profiles": {"devices": [f"d{n}" for n in FEW]},
        "lock_runs": {"ids": FEW},
        "read_steps": {"runs": FEW},
        "read_targets": {"ids": FEW},
        "read_spent": {"hour": 5, "channels": [n % 1000 for n in FEW]},
        "end_runs": {"state": ["done"] * N, "ended_at": FEW, "ended_by": [None] * N, "id": FEW},
        "add_spent": {"channel_id": [n % 1000 for n in FEW], "hour": [5] * N, "messages": FEW, "segments": FEW},
        "find_steps_by_job": {"jobs": FEW},
        "find_steps_by_provider": {"names": [f"m{n}" for n in FEW]},
        "find_deferred": {"channel": 20, "until": 20, "job": 20, "n": 10},
        "find_digest": {"channel": 20, "until": 20},
        "move_digest": {"channel": 30, "until": 30, "job": 30, "following": 31},
        "find_open_steps": {"after": 30_000, "n": 10},
        "find_stale_steps": {"after": 30_000, "before": 1 << 40, "n": 10},
        "find_prunable": {"before": 100, "n": 10},
        "count_unfinished": {"n": 10},
        "find_runs_of_profile": {"profile": 20},
        "delete_former": {"runs": list(range(1, 11))},
        "delete_steps": {"runs": list(range(1, 11))},
        "delete_runs": {"ids": list(range(1, 11))},
    },
    {
        "list_runs": {"before": 30_000, "n": 10},
        "list_unfinished": {"before": 30_000, "n": 10},
        "list_ended": {"before": 30_000, "state": "done", "n": 10},
        "list_dead_steps": {"after": 10_000, "error_code": None, "reason": None, "n": 10},
        "list_profiles": {"after": 30_000, "n": 10},
        "list_channels": {"after": 0, "low": 30_000, "high": 30_000, "n": 10},
        "list_routes": {"after": 0, "low": 30_000, "high": 30_000, "n": 10},
        "list_plans": {"after": 30_000, "n": 10},
        "list_unreachable": {"after": 39_990, "n": 10},
        "read_plan_steps": {"plan": 30_000, "version": 1},
        "read_runs": {"ids": FEW},
        "count_ended": {"since": ROWS - 10},
    },
    frozenset({"list_unreachable"}),
)  # fmt: skip
ROOMS = {"notify": NOTIFY, "channels": CHANNELS, "changes": CHANGES, "actions": ACTIONS}


@pytest.mark.parametrize("analyzed", ["never analyzed", "analyzed when empty", "analyzed when full"])
@pytest.mark.parametrize("room", ROOMS)
def test_plans_made_on_empty_tables_are_cheap_on_full_ones(room: str, analyzed: str):
    plans, tables = ROOMS[room], ", ".join(ROOMS[room].tables)
    with contextlib.ExitStack() as stack:
        address = stack.enter_context(server().new_database())
        vacuum_by_hand(address, plans.tables)
        writer, reader = (
            stack.enter_context(contextlib.closing(Prepared(address, settings, Queries(f"ulak.{room}"))))
            for settings in (_SETTINGS, READER_SETTINGS)
        )
        if analyzed == "analyzed when empty":
            fill(address, [f"VACUUM ANALYZE {tables}"])
        writer.prepare(plans.writes)
        reader.prepare(plans.reads)
        fill(address, [*plans.fills, *([f"ANALYZE {tables}"] if analyzed == "analyzed when full" else [])])
        late = frozenset() if analyzed == "analyzed when full" else plans.by_statistics
        dear = {**_dear(writer, plans.writes), **_dear(reader, plans.reads)}
    assert {name: cost for name, cost in dear.items() if name not in late} == {}


def _dear(prepared: Prepared, statements: Statements) -> dict[str, tuple[int, int]]:
    """Those that read more blocks than the rows that they are about are worth."""
    measured = {name: prepared.measure(name, **parameters) for name, parameters in statements.items()}
    return {name: (blocks, rows) for name, (blocks, rows) in measured.items() if blocks > LITTLE * max(rows, N)}
