SELECT id FROM job INDEXED BY job_suspect WHERE state = 4 AND crashes >= :least LIMIT 1
