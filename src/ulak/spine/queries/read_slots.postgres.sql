SELECT slots FROM job WHERE key = :key AND state = 3 LIMIT 1
