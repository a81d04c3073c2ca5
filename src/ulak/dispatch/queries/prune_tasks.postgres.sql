DELETE FROM dispatch_task
WHERE id = ANY(:ids::bigint[])
