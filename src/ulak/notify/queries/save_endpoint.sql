INSERT INTO notify_endpoint (url, secrets, disabled_at, reason) VALUES (:url, :secrets, :disabled_at, :reason)
ON CONFLICT (url) DO UPDATE SET secrets = excluded.secrets, disabled_at = excluded.disabled_at, reason = excluded.reason
