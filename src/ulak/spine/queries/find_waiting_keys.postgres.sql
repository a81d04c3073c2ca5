SELECT DISTINCT key FROM job
WHERE key IS NOT NULL AND state + 0 <> 2 AND id = ANY(:ids::bigint[]) ORDER BY key
