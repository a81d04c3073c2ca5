SELECT id, kind, state, key, prio, attempt, crashes, accepted_at, due_at, started_at, NULL, expires_at, unique_key,
  CASE WHEN :whole::boolean THEN note END, NULL, CASE WHEN :whole::boolean THEN payload END
FROM job
WHERE id < :before AND id >= :least AND (:key::text IS NULL OR key = :key::text) AND (:kind::text IS NULL OR kind = :kind::text) AND (:status::bigint IS NULL OR state = :status::bigint) ORDER BY id DESC LIMIT :n
