UPDATE actions_step SET job = :following
WHERE deferred_until IS NOT NULL AND channel_id = :channel AND deferred_until = :until AND job = :job AND ended_at IS NULL
