SELECT * FROM (
SELECT * FROM (SELECT id, kind, state, key, prio, attempt, crashes, accepted_at, due_at, started_at, NULL, expires_at, unique_key, note, NULL, payload, NULL FROM job WHERE id < :before AND kind IN (SELECT value FROM json_each(:kinds)) ORDER BY id DESC LIMIT :n)
UNION ALL
SELECT * FROM (SELECT id, kind, outcome, key, prio, attempt, crashes, accepted_at, due_at, started_at, settled_at, expires_at, unique_key, note, detail, payload, NULL FROM past WHERE id < :before AND kind IN (SELECT value FROM json_each(:kinds)) ORDER BY id DESC LIMIT :n)
UNION ALL
SELECT * FROM (SELECT id, kind, 'dead', key, prio, attempt, crashes, accepted_at, due_at, started_at, died_at, expires_at, unique_key, note, cause, payload, error_class FROM dead WHERE id < :before AND kind IN (SELECT value FROM json_each(:kinds)) ORDER BY id DESC LIMIT :n)
) ORDER BY 1 DESC LIMIT :n
