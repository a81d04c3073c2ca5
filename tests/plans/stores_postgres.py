"""The store's own statements: how jobs come in and leave in bulk, the outbox, owners and credit."""

from __future__ import annotations

from typing import Any

from tests.plans.measure import HANDFUL, NEW, SOME, Parameters, rows
from tests.plans.spine import LEASED, READY

FILL = [
    f"""
INSERT INTO event_outbox (token, owner, node, at, count, body, words, kinds, numbers, credit_pools, credits)
SELECT 300000 + n, 1, 1, n, n % 2, '\\x90', ARRAY['done'], ARRAY['mail'], ARRAY[1], ARRAY['kind7'], ARRAY[1] {SOME}""",
    f"INSERT INTO capacity SELECT 'kind' || n, 100, 50, 50 {HANDFUL}",
    f"INSERT INTO credit SELECT 'kind' || n, n, 10 {HANDFUL}",
    "INSERT INTO meta VALUES ('uuid_mark', 'm')",
]
_OUTBOX: dict[str, Any] = {
    "token": 400_000, "owner": 1, "node": 1, "at": 5, "count": 1, "body": b"\x90", "words": ["done"], "kinds": ["mail"],
    "numbers": [1], "credit_pools": ["kind7"], "credits": [1],
}  # fmt: skip
_JOBS = rows(
    id=NEW, kind="mail", key=None, slots=1, slot=None, prio=2, due_at=5, state=0, accepted_at=5, expires_at=None,
    unique_key=[f"new{one}" for one in NEW], continuation=None, hold=0, payload=b"null", trace=None,
)  # fmt: skip
STATEMENTS: dict[str, Parameters] = {
    "announce_jobs": _OUTBOX | {"payloads": ["mail"]},
    "correct_free": {"pool": "kind7", "number": 1},
    "count_free": {"live": ":live"},
    "delete_owner": {"id": 7},
    "drop_credit": {},
    "find_credit_of_the_dead": {},
    "find_levels": {"kinds": ["mail", "other", "none"], "prios": [2, 2, 2], "floors": [0, 0, 0]},
    "find_owner": {"id": 7},
    "find_reservations": {"tokens": [300_007, 10_000], "xids": ["1", "1"]},
    "find_token": {"token": 10_000},
    "find_unsafe_settings": {},
    "finish_jobs": rows(id=LEASED, epoch=1, done=1) | {"now": 20_000},
    "fold_tokens": {"n": 10, "before": 1000},
    "forget_owners": {"before": 50},
    "give_credit": {"number": 1, "pool": "kind7"},
    "insert_alike": {"kind": "mail", "slots": 1, "prio": 2, "state": 0}
    | rows(id=NEW, key=None, slot=None, due_at=5, payload=b"null"),
    "insert_jobs": _JOBS,
    "insert_outbox": _OUTBOX,
    "keep_mark": {"mark": "m"},
    "lock_keys": {"keys": ["k1", "k2"]},
    "lock_recount": {"lock": 7},
    "newest_id": {},
    "number_events": {"floor": 0, "n": 10},
    "offer_jobs": _JOBS,
    "read_free": {"bound": 100, "pool": "kind7"},
    "read_gauges": {},
    "read_mark": {},
    "register_owner": {"id": 60, "label": "here", "now": 5, "lease_at": 9},
    "take_credit": {"pool": "kind7", "bound": 100, "wanted": 10},
    "try_keys": {"keys": ["k1", "k2"]},
    "withdraw_jobs": {"ids": READY},
}
READS = {"find_reservations"}
