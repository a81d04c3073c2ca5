INSERT INTO notify_idempotency (key, hash, job, at) VALUES :rows
ON CONFLICT (key) DO UPDATE SET hash = excluded.hash, job = excluded.job, at = excluded.at
