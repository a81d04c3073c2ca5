SELECT id, kind, key, slots, slot, prio, crashes FROM job
WHERE state = 1 AND due_at <= :now ORDER BY due_at, id LIMIT :n FOR UPDATE SKIP LOCKED
