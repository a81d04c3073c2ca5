DELETE FROM actions_former WHERE run = ANY(:runs::bigint[])
