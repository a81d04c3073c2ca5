UPDATE job SET due_at = :now
WHERE id IN (
  SELECT id FROM job INDEXED BY job_slot
  WHERE key = :key AND slot IS NOT NULL AND state = 1 AND due_at > :now AND due_at <= :until
)
