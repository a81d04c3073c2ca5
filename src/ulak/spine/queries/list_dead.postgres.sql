SELECT id, kind, 'dead', key, prio, attempt, crashes, accepted_at, due_at, started_at, died_at, expires_at, unique_key,
  CASE WHEN :whole::boolean THEN note END, CASE WHEN :whole::boolean THEN cause END, CASE WHEN :whole::boolean THEN payload END, code, error_class
FROM dead
WHERE id < :before AND id >= :least AND (:key::text IS NULL OR key = :key::text) AND (:kind::text IS NULL OR kind = :kind::text) ORDER BY id DESC LIMIT :n
