DELETE FROM actions_step WHERE run = ANY(:runs::bigint[])
