SELECT id FROM dead
WHERE id > :after
  AND (:kind IS NULL OR kind = :kind)
  AND (:error_class IS NULL OR error_class = :error_class)
  AND (:code IS NULL OR code = :code)
  AND (:contains IS NULL OR cause LIKE :contains ESCAPE '\')
  AND (:died_before IS NULL OR died_at < :died_before)
  AND (:died_after IS NULL OR died_at >= :died_after)
ORDER BY id LIMIT :n
