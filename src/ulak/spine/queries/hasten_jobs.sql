-- Only what was claimed before: what was never tried is scheduled, and keeps its time.
UPDATE job SET due_at = :now
WHERE id IN (
  SELECT id FROM job INDEXED BY job_put_off
  WHERE key = :key AND state = 1 AND epoch > 0 AND due_at > :now AND due_at <= :until
  ORDER BY due_at LIMIT :n
)
