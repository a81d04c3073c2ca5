UPDATE job SET state = 4, owner = NULL WHERE id = ANY(:ids::bigint[])
