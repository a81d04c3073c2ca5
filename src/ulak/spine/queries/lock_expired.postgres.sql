-- One that was claimed since it was found, or that somebody has in hand, is theirs.
SELECT id, epoch, kind, key, slot, slots, prio, attempt, crashes, continuation, started_at, cancelled_at, state, trace
FROM job WHERE state + 0 <> 2 AND id = ANY(:ids::bigint[]) ORDER BY id FOR UPDATE SKIP LOCKED
