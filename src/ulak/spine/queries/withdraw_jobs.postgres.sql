-- A job that another transaction has in hand is skipped: waiting for it, with a room's rows locked, could be a deadlock.
WITH waiting AS (
  SELECT id FROM job WHERE state + 0 <> 2 AND id = ANY(:ids::bigint[]) ORDER BY id FOR UPDATE SKIP LOCKED
)
DELETE FROM job WHERE id = ANY(ARRAY(SELECT id FROM waiting))
RETURNING id, epoch, kind, key, slot, slots, prio, attempt, crashes, continuation, started_at, cancelled_at, state, trace
