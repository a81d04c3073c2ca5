"""Two feeds: versions, publications, titles and archives; syncs and watches of ten registries."""

from __future__ import annotations

from tests.plans.measure import EVERY, FEW, HANDFUL, NEW, OLD, ROWS, SOME, N, Parameters, rows

FILL = [
    f"INSERT INTO changes_registry (name, lease_owner, lease_epoch) SELECT 'r' || n, n, 1 {HANDFUL}",
    f"""INSERT INTO changes_feed (name, registry, epoch, buckets, state_hash)
SELECT 'f' || n, 'r' || n, 'e', '\\x00', 'h' {HANDFUL}""",
    f"""INSERT INTO changes_version
SELECT 'f' || n % 2, n, 'k' || lpad((n % 10000)::text, 5, '0'), 1, 1, '\\x00', NULL, NULL, repeat('b', 100) {EVERY}""",
    f"INSERT INTO changes_publication SELECT 'f' || n % 2, n, n, n, 'list' {EVERY}",
    f"""INSERT INTO changes_sync
SELECT n, 'r' || n % 10, 'done', NULL, NULL, n, n, 'd', '{{}}', NULL, CASE WHEN n = 995 THEN 1 ELSE 0 END {SOME}""",
    f"INSERT INTO changes_title SELECT 'f' || n % 2, n, 'title ' || n {EVERY}",
    f"INSERT INTO changes_archive SELECT 'f' || n % 2, n, 'a' || n, n, 1, 'h', 1, 'd', n {HANDFUL}",
    f"INSERT INTO changes_watch SELECT n, 'f' || n % 2, '[]', '[]', NULL, 'kind', NULL, n {HANDFUL}",
]
_KEYS = [f"k{one % 10_000:05}" for one in FEW]
STATEMENTS: dict[str, Parameters] = {
    "accept_list": {"accepted": "{}", "now": 5, "name": "r7"},
    "add_archive": {
        "feed": "f1", "pos": 50_000, "name": "a", "stamp": 5, "count": 1, "state_hash": "h", "bytes": 1, "digest": "d",
        "now": 5,
    },
    "add_feed": {"name": "new", "registry": "r1", "epoch": "e", "buckets": b"", "state_hash": "h"},
    "add_publication": {"feed": "f1", "stamp": 50_000, "head_pos": 50_000, "sync": 1, "cause": "list"},
    "add_registry": {"name": "new"},
    "add_sync": {"id": 50_000, "registry": "r1", "now": 5},
    "add_watch": {
        "id": 50_000, "feed": "f1", "keys": "[]", "fields": "[]", "webhook": None, "kind": "k", "secret": None,
        "now": 5,
    },
    "check_lease": {"name": "r7", "lease": 1},
    "delete_archive": {"feed": "f1", "pos": 7},
    "delete_publications": {"feed": "f1", "stamp": 20},
    "delete_titles": {"feed": "f1", "positions": OLD},
    "delete_versions": {"feed": "f1", "positions": OLD},
    "delete_watch": {"feed": "f1", "id": 7},
    "end_lease": {"now": 5, "name": "r7", "lease": 1},
    "end_sync": {
        "status": "done", "verdict": None, "error": None, "now": 5, "digest": "d", "feeds": "{}", "preview": None,
        "held": 0, "id": 900,
    },
    "find_above": {"feed": "f1", "head": ROWS - 20, "n": 10},
    "find_expired": {"feed": "f1", "cutoff": 100},
    "find_held": {"registry": "r5"},
    "find_old_archives": {"feed": "f1", "before": 20},
    "find_position": {"feed": "f1", "stamp": 15_000},
    "find_records": {"feed": "f1", "head": 15_000, "keys": _KEYS},
    "find_superseded": {"feed": "f1", "start": 10_010, "end": 10_030},
    "insert_titles": rows(feed="f1", pos=NEW, title="t"),
    "insert_versions": rows(
        feed="f1", pos=NEW, key="k", sync=1, change=1, hash=b"h", content_hash=None, parts=None, body="b"
    ),
    "list_archives": {"feed": "f1", "n": 10},
    "list_before": {"feed": "f1", "positions": FEW},
    "list_digests": {"registry": "r1", "before": 900, "n": 10},
    "list_feeds": {},
    "list_publications": {"feed": "f1", "start": 15_000, "n": 10},
    "list_records": {"feed": "f1", "after": "k05000", "before": "l", "head": 15_000, "n": 10},
    "list_syncs": {"registry": "r1", "before": 900, "n": 10},
    "list_versions": {"feed": "f1", "start": 15_000, "end": 15_020},
    "list_versions_of": {"feed": "f1", "start": 100, "end": 19_000, "keys": _KEYS, "n": N},
    "list_watches": {"feed": "f1"},
    "lock_registry": {"name": "r7"},
    "move_fan": {"pos": 5, "name": "f7", "was": 0},
    "move_floor": {"pos": 5, "stamp": 5, "name": "f7"},
    "move_head": {
        "head_pos": 5, "floor_pos": 0, "floor_stamp": 0, "stamp": 5, "head_stamp": 5, "count": 1, "aliases": "{}",
        "buckets": b"", "state_hash": "h", "fan_pos": 0, "pruned_pos": 0, "name": "f7",
    },
    "move_pruned": {"pos": 5, "name": "f7"},
    "move_stamp": {"stamp": 5, "name": "f7"},
    "prune_syncs": {"before": 10},
    "read_archive": {"feed": "f1", "name": "a7"},
    "read_registry": {"name": "r7"},
    "read_sync": {"registry": "r1", "id": 21},
    "read_versions": {"feed": "f1", "positions": FEW},
    "read_watch": {"feed": "f1", "id": 7},
    "release_held": {"registry": "r5"},
    "search_titles": {"feed": "f1", "head": ROWS, "text": "title 15", "n": 10},
    "take_lease": {"owner": 1, "name": "r7"},
}  # fmt: skip
READS = {"list_records", "list_versions_of", "search_titles"}
