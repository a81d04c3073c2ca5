-- New jobs that differ in little: what they share is bound once.
INSERT INTO job (id, kind, key, slots, slot, prio, due_at, state, accepted_at, hold, payload, turn)
SELECT id, :kind::text, key, :slots::integer, slot, :prio::smallint, due_at, :state::smallint, due_at, 0, payload, id
FROM unnest(:id::bigint[], :key::text[], :slot::bigint[], :due_at::bigint[], :payload::bytea[])
  AS fresh (id, key, slot, due_at, payload)
