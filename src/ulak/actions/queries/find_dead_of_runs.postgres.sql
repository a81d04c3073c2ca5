SELECT job FROM actions_step WHERE reason IS NOT NULL AND run = ANY(:runs::bigint[])
