SELECT id, kind, key, due_at, attempt FROM job WHERE state = 1 AND due_at >= :since ORDER BY due_at LIMIT :n
