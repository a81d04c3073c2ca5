SELECT id, error_class, length(payload) FROM dead WHERE id = ANY(:ids::bigint[]) ORDER BY id
