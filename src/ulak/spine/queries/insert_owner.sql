INSERT INTO owner (id, node, label, started_at, lease_at) VALUES (:id, :node, :label, :now, :lease_at) ON CONFLICT DO NOTHING
