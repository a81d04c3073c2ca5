SELECT id, kind, state, key, prio, attempt, crashes, accepted_at, due_at, started_at, NULL, expires_at, unique_key, note, NULL, payload, NULL FROM job WHERE id = :id AND kind LIKE 'notify.%'
UNION ALL
SELECT id, kind, outcome, key, prio, attempt, crashes, accepted_at, due_at, started_at, settled_at, expires_at, unique_key, note, detail, payload, NULL FROM past WHERE id = :id AND kind LIKE 'notify.%'
UNION ALL
SELECT id, kind, 'dead', key, prio, attempt, crashes, accepted_at, due_at, started_at, died_at, expires_at, unique_key, note, cause, payload, error_class FROM dead WHERE id = :id AND kind LIKE 'notify.%'
