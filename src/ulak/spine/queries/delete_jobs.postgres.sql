DELETE FROM job WHERE id = ANY(:ids::bigint[])
