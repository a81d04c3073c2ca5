DELETE FROM dead WHERE id = ANY(:ids::bigint[])
