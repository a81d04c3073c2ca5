SELECT id, length(payload) FROM dead WHERE id = ANY(:ids::bigint[]) ORDER BY id
