"""Messages that wait for their topic, and the relay's lease."""

from __future__ import annotations

from tests.plans.measure import EVERY, HANDFUL, NEW, Parameters, rows

FILL = [
    f"INSERT INTO buses_waiting SELECT 'topic' || n % 4, n / 10, n % 10, '\\x90' {EVERY}",
    f"INSERT INTO buses_lease SELECT 'name' || n, n, n {HANDFUL}",
]
STATEMENTS: dict[str, Parameters] = {
    "count_waiting": {},
    "delete_waiting": {"topic": "topic1", "page": 10, "place": 0},
    "dismiss_waiting": {"topic": "topic1", "page": 500, "place": 0, "last_page": 600, "last_place": 0, "n": 10},
    "drop_lease": {"name": "name7", "owner": 7},
    "hold_lease": {"name": "name7", "owner": 7, "until_at": 90, "now": 5},
    "insert_waiting": rows(topic="topic1", page=NEW, place=1, message=b"m"),
    "last_waiting": {"topic": "topic1"},
    "read_waiting": {"topic": "topic1", "page": 500, "place": 0, "n": 10},
}
