INSERT INTO past (id, kind, outcome, key, prio, attempt, crashes, accepted_at, due_at, started_at, settled_at, expires_at, unique_key, note, payload)
SELECT id, kind, :outcome, key, prio, attempt, crashes, accepted_at, due_at, started_at, :now, expires_at, unique_key, note, payload
FROM job WHERE id = ANY(:ids::bigint[])
