UPDATE job SET state = CASE WHEN crashes = 0 THEN 0 ELSE 4 END WHERE id = ANY(:ids::bigint[])
