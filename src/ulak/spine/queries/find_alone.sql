SELECT DISTINCT kind FROM job INDEXED BY job_suspect WHERE state = 4 AND crashes >= :least
