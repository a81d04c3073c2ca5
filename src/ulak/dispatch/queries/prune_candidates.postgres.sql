DELETE FROM dispatch_candidate
WHERE task = ANY(:ids::bigint[])
