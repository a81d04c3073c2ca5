-- Nobody waits for what becomes of these and they hold no slot: kept as they are, if they are still ours.
INSERT INTO past (id, kind, outcome, key, prio, attempt, crashes, accepted_at, due_at, started_at, settled_at, expires_at, unique_key, note, payload)
SELECT id, kind, 'done', key, prio, attempt, crashes, accepted_at, due_at, started_at, :now, expires_at, unique_key, note, payload
FROM job WHERE id IN (SELECT value FROM json_each(:ids)) AND epoch = :epoch AND state = 2 AND continuation IS NULL
