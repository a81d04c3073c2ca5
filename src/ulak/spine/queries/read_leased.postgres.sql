-- `state + 0` keeps the planner from a walk over all leases.
SELECT id, epoch, kind, key, slot, slots, prio, attempt, crashes, continuation, started_at, cancelled_at, state, trace
FROM job WHERE state + 0 = 2 AND id = ANY(:ids::bigint[]) ORDER BY id FOR UPDATE
