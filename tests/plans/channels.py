"""Webhook endpoints and the installation's own key."""

from __future__ import annotations

from tests.plans.measure import EVERY, Parameters

FILL = [
    f"INSERT INTO channels_endpoint SELECT 'http://h/' || n, repeat('s', 100), NULL, NULL, 0 {EVERY}",
    "INSERT INTO channels_key VALUES ('webhook', 's')",
]
STATEMENTS: dict[str, Parameters] = {
    "delete_endpoint": {"url": "http://h/9"},
    "keep_key": {"secret": "s"},
    "list_endpoints": {},
    "read_endpoint": {"url": "http://h/8"},
    "read_key": {},
    "save_endpoint": {
        "url": "http://h/7", "secrets": "s", "disabled_at": None, "reason": None, "requires_secret": 0,
    },
}  # fmt: skip
