-- Delete what is still leased under the given epoch, keep it in `past`, and tell who it was: one round trip for a batch.
WITH gone AS (
  DELETE FROM job
  USING unnest(:id::bigint[], :epoch::bigint[], :outcome::text[], :detail::text[]) AS given (id, epoch, outcome, detail)
  WHERE job.id = given.id AND job.state = 2 AND job.epoch = given.epoch
  RETURNING job.*, given.outcome, given.detail
), kept AS (
  INSERT INTO past (id, kind, outcome, key, prio, attempt, crashes, accepted_at, due_at, started_at, settled_at, expires_at, unique_key, note, detail, payload)
  SELECT id, kind, outcome, key, prio, attempt, crashes, accepted_at, due_at, started_at, :now, expires_at, unique_key, note, detail, payload
  FROM gone
)
SELECT outcome, CASE WHEN continuation IS NULL THEN NULL ELSE payload END,
       id, epoch, kind, key, slot, prio, attempt, crashes, continuation, started_at, cancelled_at
FROM gone
