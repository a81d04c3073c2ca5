SELECT count(*) FROM job WHERE state = 1 AND due_at >= :hold
