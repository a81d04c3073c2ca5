SELECT key, hash, job FROM notify_idempotency WHERE key = ANY(:keys) AND at > :since
