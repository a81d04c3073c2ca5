SELECT id, kind, outcome, key, prio, attempt, crashes, accepted_at, due_at, started_at, settled_at, expires_at, unique_key,
  CASE WHEN :whole THEN note END, CASE WHEN :whole THEN detail END, CASE WHEN :whole THEN payload END
FROM past
WHERE id < :before AND id >= :least AND (:key IS NULL OR key = :key) AND (:kind IS NULL OR kind = :kind) AND (:status IS NULL OR outcome = :status) ORDER BY id DESC LIMIT :n
