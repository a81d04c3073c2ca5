SELECT id, kind, outcome, key, prio, attempt, crashes, accepted_at, due_at, started_at, settled_at, expires_at, unique_key,
  CASE WHEN :whole::boolean THEN note END, CASE WHEN :whole::boolean THEN detail END, CASE WHEN :whole::boolean THEN payload END
FROM past
WHERE id < :before AND id >= :least AND (:key::text IS NULL OR key = :key::text) AND (:kind::text IS NULL OR kind = :kind::text) AND (:status::text IS NULL OR outcome = :status::text) ORDER BY id DESC LIMIT :n
