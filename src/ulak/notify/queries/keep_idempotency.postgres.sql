INSERT INTO notify_idempotency (key, hash, job, at)
SELECT * FROM unnest(:key::text[], :hash::text[], :job::bigint[], :at::bigint[])
ON CONFLICT (key) DO UPDATE SET hash = excluded.hash, job = excluded.job, at = excluded.at
