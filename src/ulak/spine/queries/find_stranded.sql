SELECT DISTINCT key FROM job INDEXED BY job_behind WHERE state = 3 AND key > :after ORDER BY key LIMIT :n
