SELECT evaluation_key, id, plan_id, trace_id, ended_at FROM actions_run WHERE evaluation_key = ANY(:keys::text[])
