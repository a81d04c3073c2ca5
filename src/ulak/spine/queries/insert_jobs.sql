INSERT INTO job (id, kind, key, slots, slot, prio, due_at, state, accepted_at, expires_at, unique_key, continuation, hold, payload)
VALUES :rows
ON CONFLICT DO NOTHING
