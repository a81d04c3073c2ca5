UPDATE job
SET state = 2, epoch = epoch + 1, owner = :owner, attempt = attempt + 1, started_at = :now
WHERE id IN (
  SELECT id FROM job INDEXED BY job_ready WHERE kind = :kind AND prio = :prio AND state = 0 ORDER BY id LIMIT :n
)
RETURNING id, epoch, kind, key, prio, attempt, crashes, accepted_at, due_at, expires_at, payload
