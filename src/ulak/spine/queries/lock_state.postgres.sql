SELECT state, id, epoch, kind, key, slot, prio, attempt, crashes, continuation, started_at, cancelled_at
FROM job WHERE id = :id FOR UPDATE
