-- The array pins the plan: one look along job_ready, then one look-up per id. The floor skips index entries of jobs that
-- were claimed already and can't be vacuumed while somebody holds an old snapshot.
UPDATE job
SET state = 2, epoch = epoch + 1, owner = :owner, attempt = attempt + 1, started_at = GREATEST(:now, due_at)
WHERE id = ANY(ARRAY(
  SELECT id FROM job WHERE kind = :kind AND prio = :prio AND state = 0 AND turn > :floor
  ORDER BY kind, prio, turn LIMIT :n FOR UPDATE SKIP LOCKED
))
RETURNING id, epoch, kind, key, prio, attempt, crashes, accepted_at, due_at, expires_at, payload, trace, turn
