SELECT id, node, label, started_at, lease_at FROM owner ORDER BY id
