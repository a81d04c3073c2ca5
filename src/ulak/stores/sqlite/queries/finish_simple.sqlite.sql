-- Nobody waits for what becomes of these and they hold no slot: kept as they are, if they are still ours. Each id is
-- there once; a join looks them up as they come, where IN would first sort them into a table of its own.
INSERT INTO past (id, kind, outcome, key, prio, attempt, crashes, accepted_at, due_at, started_at, settled_at, expires_at, unique_key, note, trace, payload)
SELECT job.id, kind, 'done', job.key, prio, attempt, crashes, accepted_at, due_at, started_at, :now, expires_at, unique_key, note, trace, payload
FROM json_each(:ids) AS wanted CROSS JOIN job ON job.id = wanted.value
WHERE epoch = :epoch AND state = 2 AND continuation IS NULL
