SELECT id, kind, key, slots, slot, prio, crashes, due_at FROM job INDEXED BY job_due
WHERE state = 1 AND due_at <= :until ORDER BY due_at, id LIMIT :n
