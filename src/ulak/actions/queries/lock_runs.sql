SELECT id, evaluation_key, plan_id, plan_version, state, trace_id, device_id, stream_id, group_id, rule_id, language, critical, variables, accepted_at, ended_at, ended_by, trace
FROM actions_run WHERE id IN (SELECT value FROM json_each(:ids)) ORDER BY id
