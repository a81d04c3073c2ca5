DELETE FROM dispatch_helper
WHERE id = ANY(:ids::bigint[])
