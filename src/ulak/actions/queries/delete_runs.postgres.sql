DELETE FROM actions_run WHERE id = ANY(:ids::bigint[])
