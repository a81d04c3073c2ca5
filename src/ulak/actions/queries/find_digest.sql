SELECT job FROM actions_step WHERE deferred_until IS NOT NULL AND channel_id = :channel AND deferred_until = :until AND ended_at IS NULL LIMIT 1
