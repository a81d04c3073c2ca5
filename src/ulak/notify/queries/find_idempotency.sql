SELECT key, hash, job FROM notify_idempotency WHERE key IN (SELECT value FROM json_each(:keys)) AND at > :since
