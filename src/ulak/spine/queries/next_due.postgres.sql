SELECT due_at FROM job WHERE state = 1 ORDER BY due_at, id LIMIT 1
