SELECT id, kind, key, slots, slot, prio, crashes FROM job INDEXED BY job_due
WHERE state = 1 AND due_at <= :now ORDER BY due_at, id LIMIT :n
