SELECT id, kind, key, slots, slot, prio, crashes, due_at FROM job
WHERE state = 1 AND due_at > :floor::bigint AND due_at <= :until ORDER BY due_at, id LIMIT :n FOR UPDATE SKIP LOCKED
