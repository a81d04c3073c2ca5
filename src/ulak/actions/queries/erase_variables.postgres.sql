UPDATE actions_run SET variables = '{}' WHERE id = ANY(:runs::bigint[])
