-- No ON CONFLICT: an id or a slot that is taken already must fail aloud, not be lost in silence.
-- OR FAIL: an error undoes the batch anyway, so SQLite need not copy every page first (`neighbours`, end to end by key).
INSERT OR FAIL INTO job (id, kind, key, slots, slot, prio, due_at, state, accepted_at, expires_at, unique_key, continuation, hold, payload, trace, turn, attempt, epoch, owner, started_at)
VALUES :rows
