UPDATE job SET due_at = due_at - :hold
WHERE id = ANY(ARRAY(SELECT id FROM job WHERE state = 1 AND due_at >= :hold ORDER BY due_at, id LIMIT :n))
