SELECT id, kind, key, due_at, attempt FROM job INDEXED BY job_due
WHERE state = 1 AND (due_at, id) > (:due_at, :id) ORDER BY due_at, id LIMIT :n
