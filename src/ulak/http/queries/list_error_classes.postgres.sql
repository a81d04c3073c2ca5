SELECT id, error_class FROM dead WHERE id = ANY(:ids::bigint[]) ORDER BY id
