INSERT INTO channels_endpoint (url, secrets, disabled_at, reason, requires_secret)
VALUES (:url, :secrets, :disabled_at, :reason, :requires_secret)
ON CONFLICT (url) DO UPDATE SET secrets = excluded.secrets, disabled_at = excluded.disabled_at, reason = excluded.reason,
  requires_secret = excluded.requires_secret
