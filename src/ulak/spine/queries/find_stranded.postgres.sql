SELECT DISTINCT key FROM job WHERE state = 3 AND key > :after ORDER BY key LIMIT :n
