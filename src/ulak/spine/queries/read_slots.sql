SELECT slots FROM job INDEXED BY job_behind WHERE key = :key AND state = 3 LIMIT 1
