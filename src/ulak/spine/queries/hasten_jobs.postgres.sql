-- Only what was claimed before: what was never tried is scheduled, and keeps its time. Who has a row locked is about to
-- change it: a look that makes it ready may wait for the key, so nobody waits for the row.
UPDATE job SET due_at = :now
WHERE id = ANY(ARRAY(
  SELECT id FROM job
  WHERE key = :key AND state = 1 AND epoch > 0 AND due_at > :now AND due_at <= :until
  ORDER BY key, due_at LIMIT :n FOR UPDATE SKIP LOCKED
))
