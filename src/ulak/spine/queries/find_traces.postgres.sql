SELECT id, trace FROM job WHERE trace IS NOT NULL AND id = ANY(:ids::bigint[])
UNION ALL SELECT id, trace FROM past WHERE trace IS NOT NULL AND id = ANY(:ids::bigint[])
UNION ALL SELECT id, trace FROM dead WHERE trace IS NOT NULL AND id = ANY(:ids::bigint[])
