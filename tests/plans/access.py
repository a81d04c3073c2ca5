"""Keys and secrets."""

from __future__ import annotations

from tests.plans.measure import HANDFUL, Parameters

FILL = [
    f"INSERT INTO access_key SELECT 'key' || n, 'name', 'digest', 'admin', n, NULL {HANDFUL}",
    f"INSERT INTO access_secret SELECT 'name' || n, 'v' {HANDFUL}",
]
STATEMENTS: dict[str, Parameters] = {
    "insert_key": {"id": "new", "name": "n", "digest": "d", "scopes": "admin", "made_at": 5},
    "keep_secret": {"name": "new", "value": "v"},
    "list_keys": {},
    "read_secret": {"name": "name7"},
    "revoke_key": {"now": 5, "id": "key7"},
}
