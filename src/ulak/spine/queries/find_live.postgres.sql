SELECT id FROM job WHERE id = ANY(:ids::bigint[])
