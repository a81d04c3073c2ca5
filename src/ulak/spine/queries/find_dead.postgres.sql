SELECT id FROM dead
WHERE id > :after
  AND (:kind::text IS NULL OR kind = :kind::text)
  AND (:error_class::text IS NULL OR error_class = :error_class::text)
  AND (:code::text IS NULL OR code = :code::text)
  AND (:contains::text IS NULL OR cause ILIKE :contains::text ESCAPE '\')
  AND (:died_before::bigint IS NULL OR died_at < :died_before::bigint)
  AND (:died_after::bigint IS NULL OR died_at >= :died_after::bigint)
ORDER BY id LIMIT :n
