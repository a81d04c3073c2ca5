SELECT evaluation_key, id, plan_id, trace_id, ended_at FROM actions_run WHERE evaluation_key IN (SELECT value FROM json_each(:keys))
