SELECT run, step_order, state, channel_type, job, due_at, route_id, profile_id, channel_id, retry_count, error_code, error_message, reason, provider_message_id, deferred_until, tried, log, ended_at, timer, process_ms
FROM actions_step WHERE run IN (SELECT value FROM json_each(:runs)) ORDER BY run, step_order
