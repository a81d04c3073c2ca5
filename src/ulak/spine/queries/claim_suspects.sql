UPDATE job
SET state = 2, epoch = epoch + 1, owner = :owner, attempt = attempt + 1, started_at = MAX(:now, due_at)
WHERE id IN (
  SELECT id FROM job INDEXED BY job_suspect
  WHERE state = 4 AND crashes >= :least AND crashes <= :most AND kind IN (SELECT value FROM json_each(:kinds))
  ORDER BY crashes, turn LIMIT :n
)
RETURNING id, epoch, kind, key, prio, attempt, crashes, accepted_at, due_at, expires_at, payload, trace
