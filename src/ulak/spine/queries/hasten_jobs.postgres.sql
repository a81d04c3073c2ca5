-- Who has a row locked is about to change it: a look that makes it ready may wait for the key, so nobody waits for the row.
UPDATE job SET due_at = :now
WHERE id IN (
  SELECT id FROM job
  WHERE key = :key AND slot IS NOT NULL AND state = 1 AND due_at > :now AND due_at <= :until
  FOR UPDATE SKIP LOCKED
)
