SELECT id, node, label, started_at, lease_at FROM owner WHERE dead_at IS NULL ORDER BY id
