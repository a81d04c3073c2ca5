UPDATE job
SET state = 2, epoch = epoch + 1, owner = :owner, attempt = attempt + 1, started_at = GREATEST(:now, due_at)
WHERE id = ANY(ARRAY(
  SELECT id FROM job WHERE state = 4 AND crashes >= :least AND crashes <= :most AND kind = ANY(:kinds::text[])
  ORDER BY crashes, turn LIMIT :n FOR UPDATE SKIP LOCKED
))
RETURNING id, epoch, kind, key, prio, attempt, crashes, accepted_at, due_at, expires_at, payload, trace
