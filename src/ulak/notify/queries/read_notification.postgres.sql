SELECT id, kind, CASE state WHEN 0 THEN 'ready' WHEN 1 THEN 'deferred' WHEN 2 THEN 'running' WHEN 3 THEN 'behind' ELSE 'suspect' END, key, prio, attempt, crashes, accepted_at, due_at, started_at, NULL::bigint, expires_at, unique_key, note, NULL::text, payload, NULL::text FROM job WHERE id = :id AND kind LIKE 'notify.%'
UNION ALL
SELECT id, kind, outcome, key, prio, attempt, crashes, accepted_at, due_at, started_at, settled_at, expires_at, unique_key, note, detail, payload, NULL::text FROM past WHERE id = :id AND kind LIKE 'notify.%'
UNION ALL
SELECT id, kind, 'dead', key, prio, attempt, crashes, accepted_at, due_at, started_at, died_at, expires_at, unique_key, note, cause, payload, error_class FROM dead WHERE id = :id AND kind LIKE 'notify.%'
