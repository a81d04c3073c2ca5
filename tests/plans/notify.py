"""Idempotency keys, inboxes, references and the attempts of webhooks."""

from __future__ import annotations

from tests.plans.measure import EVERY, FEW, NEW, ROWS, Parameters, rows

FILL = [
    f"INSERT INTO notify_idempotency SELECT 'k' || n, 'h', n, n {EVERY}",
    f"""INSERT INTO notify_inbox
SELECT n, 'r' || n % 1000, NULL, repeat('b', 100), '{{}}', n, n, CASE WHEN n % 3 = 0 THEN n END {EVERY}""",
    f"INSERT INTO notify_reference SELECT 'order' || n % 1000, n {EVERY}",
    f"INSERT INTO notify_attempt SELECT n, 'http://h/' || n % 1000, n, 1, n, 1, 200, NULL {EVERY}",
]
STATEMENTS: dict[str, Parameters] = {
    "add_to_inbox": {
        "id": 50_000, "recipient": "r7", "subject": None, "body": "b", "metadata": "{}", "created_at": 5, "now": 5,
    },
    "count_attempts": {"since": ROWS - 10},
    "count_unread": {"recipient": "r8"},
    "find_idempotency": {"keys": [f"k{one}" for one in FEW], "since": 0},
    "find_references": {"reference": "order8", "before": 15_000, "n": 10},
    "keep_attempts": rows(id=NEW, url="http://h/7", job=NEW, number=1, at=5, millis=5, status=200, code=None),
    "keep_idempotency": rows(key=[f"k{one}" for one in FEW], hash="g", job=FEW, at=FEW),
    "keep_reference": rows(reference="order1", job=NEW),
    "list_attempts": {"url": "http://h/8", "before": 15_000, "n": 10},
    "list_inbox": {"recipient": "r8", "before": 15_000, "unread": 0, "n": 10},
    "mark_read": {"recipient": "r7", "now": 1, "id": 7},
    "prune_attempts": {"before": 1000, "n": 10},
    "prune_idempotency": {"before": 1000, "n": 10},
    "prune_inbox": {"before": 1000, "n": 10},
    "prune_references": {"before": 1000, "n": 10},
    "read_inbox": {"recipient": "r7", "id": 7},
}  # fmt: skip
READS = {"count_attempts", "find_references"}
