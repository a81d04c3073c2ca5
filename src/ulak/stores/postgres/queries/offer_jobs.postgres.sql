-- In a caller's own transaction a unique key may be taken by a commit that this transaction can't see yet.
INSERT INTO job (id, kind, key, slots, slot, prio, due_at, state, accepted_at, expires_at, unique_key, continuation, hold, payload, trace, turn)
SELECT *, id FROM unnest(
  :id::bigint[], :kind::text[], :key::text[], :slots::bigint[], :slot::bigint[], :prio::bigint[], :due_at::bigint[], :state::bigint[],
  :accepted_at::bigint[], :expires_at::bigint[], :unique_key::text[], :continuation::text[], :hold::bigint[], :payload::bytea[], :trace::text[]
) AS fresh (id, kind, key, slots, slot, prio, due_at, state, accepted_at, expires_at, unique_key, continuation, hold, payload, trace)
ON CONFLICT (kind, unique_key) WHERE unique_key IS NOT NULL DO NOTHING
RETURNING id
