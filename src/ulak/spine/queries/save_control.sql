INSERT INTO kind_control (kind, paused, concurrency, changed_at) VALUES (:kind, :paused, :concurrency, :now)
ON CONFLICT (kind) DO UPDATE SET paused = :paused, concurrency = :concurrency, changed_at = :now
