SELECT DISTINCT owner FROM job INDEXED BY job_owner WHERE state = 2
