INSERT INTO kind_control (kind, paused, concurrency, changed_at) VALUES (:kind, :paused, :concurrency::bigint, :now)
ON CONFLICT (kind) DO UPDATE SET paused = EXCLUDED.paused, concurrency = EXCLUDED.concurrency, changed_at = EXCLUDED.changed_at
