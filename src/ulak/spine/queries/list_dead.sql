SELECT id, kind, 'dead', key, prio, attempt, crashes, accepted_at, due_at, started_at, died_at, expires_at, unique_key,
  CASE WHEN :whole THEN note END, CASE WHEN :whole THEN cause END, CASE WHEN :whole THEN payload END, code, error_class
FROM dead
WHERE id < :before AND id >= :least AND (:key IS NULL OR key = :key) AND (:kind IS NULL OR kind = :kind) ORDER BY id DESC LIMIT :n
