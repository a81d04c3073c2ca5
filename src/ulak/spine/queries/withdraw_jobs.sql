DELETE FROM job WHERE state <> 2 AND id IN (SELECT value FROM json_each(:ids))
RETURNING id, epoch, kind, key, slot, slots, prio, attempt, crashes, continuation, started_at, cancelled_at, state, trace
