INSERT INTO owner (id, node, label, started_at, lease_at)
SELECT :id, node, :label, :now, :lease_at FROM generate_series(0, 1023) AS node
WHERE node NOT IN (SELECT owner.node FROM owner) ORDER BY node LIMIT 1
RETURNING node
