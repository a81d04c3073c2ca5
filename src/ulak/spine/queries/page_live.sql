SELECT id, kind, state, key, prio, attempt, crashes, accepted_at, due_at, started_at, NULL, expires_at, unique_key, note, NULL, payload, NULL, NULL
FROM job WHERE id >= :least AND id < :before AND kind >= :low AND kind <= :high ORDER BY id DESC LIMIT :n
