SELECT id, payload FROM job WHERE id = ANY(:ids::bigint[])
