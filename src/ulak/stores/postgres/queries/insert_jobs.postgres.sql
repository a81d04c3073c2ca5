-- No ON CONFLICT: what the writer did not foresee must fail aloud, and then runs again alone.
INSERT INTO job (id, kind, key, slots, slot, prio, due_at, state, accepted_at, expires_at, unique_key, continuation, hold, payload, trace, turn)
SELECT *, id FROM unnest(
  :id::bigint[], :kind::text[], :key::text[], :slots::bigint[], :slot::bigint[], :prio::bigint[], :due_at::bigint[], :state::bigint[],
  :accepted_at::bigint[], :expires_at::bigint[], :unique_key::text[], :continuation::text[], :hold::bigint[], :payload::bytea[], :trace::text[]
) AS fresh (id, kind, key, slots, slot, prio, due_at, state, accepted_at, expires_at, unique_key, continuation, hold, payload, trace)
