SELECT id, kind, state, key, prio, attempt, crashes, accepted_at, due_at, started_at, NULL, expires_at, unique_key,
  CASE WHEN :whole THEN note END, NULL, CASE WHEN :whole THEN payload END
FROM job
WHERE id < :before AND id >= :least AND (:key IS NULL OR key = :key) AND (:kind IS NULL OR kind = :kind) AND (:status IS NULL OR state = :status) ORDER BY id DESC LIMIT :n
