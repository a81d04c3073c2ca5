DELETE FROM notify_idempotency WHERE key IN (SELECT key FROM notify_idempotency WHERE at < :before LIMIT :n)
