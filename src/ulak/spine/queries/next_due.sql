SELECT due_at FROM job INDEXED BY job_due WHERE state = 1 ORDER BY due_at LIMIT 1
