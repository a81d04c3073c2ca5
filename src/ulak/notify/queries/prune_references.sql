DELETE FROM notify_reference WHERE (reference, job) IN (
  SELECT reference, job FROM notify_reference WHERE job < :before LIMIT :n
)
