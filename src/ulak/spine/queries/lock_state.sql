SELECT state, id, epoch, kind, key, slot, slots, prio, attempt, crashes, continuation, started_at, cancelled_at, state
FROM job WHERE id = :id
