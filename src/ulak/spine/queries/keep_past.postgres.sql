-- What was claimed ahead of its time and ends before it has never started.
INSERT INTO past (id, kind, outcome, key, prio, attempt, crashes, accepted_at, due_at, started_at, settled_at, expires_at, unique_key, note, trace, payload)
SELECT id, kind, :outcome, key, prio, attempt, crashes, accepted_at, due_at,
  CASE WHEN :outcome = 'done' OR started_at <= :now THEN started_at END, :now, expires_at, unique_key, note, trace, payload
FROM job WHERE id = ANY(:ids::bigint[])
