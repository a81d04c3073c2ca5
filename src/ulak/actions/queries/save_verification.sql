INSERT INTO actions_verification (channel_id, digest, wrong, expires_at) VALUES (:channel, :digest, :wrong, :expires_at)
ON CONFLICT (channel_id) DO UPDATE SET digest = excluded.digest, wrong = excluded.wrong, expires_at = excluded.expires_at
