SELECT digest, wrong, expires_at FROM actions_verification WHERE channel_id = :channel
