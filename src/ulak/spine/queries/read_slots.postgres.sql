SELECT slots FROM job WHERE key = :key AND state = 3 ORDER BY key, id LIMIT 1
