DELETE FROM dispatch_decision
WHERE task = ANY(:ids::bigint[])
