UPDATE job SET state = CASE WHEN crashes = 0 THEN 0 ELSE 4 END, owner = NULL, attempt = attempt - 1, started_at = NULL
WHERE id = ANY(:ids::bigint[])
