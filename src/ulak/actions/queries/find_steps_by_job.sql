SELECT run, step_order, state, channel_type, job, due_at, route_id, profile_id, channel_id, retry_count, error_code, error_message, reason, provider_message_id, deferred_until, tried, log, ended_at, timer, process_ms
FROM actions_step WHERE reason IS NOT NULL AND job IN (SELECT value FROM json_each(:jobs))
