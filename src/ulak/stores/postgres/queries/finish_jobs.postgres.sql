-- Delete what is still leased under the given epoch, keep it in `past`, and tell who it was: one round trip for a batch.
-- The ids are sorted: width_bucket finds an id's place among them. `state + 0` keeps the planner from a walk over all leases.
-- What was claimed ahead of its time and is cancelled before it has never started.
WITH gone AS (
  DELETE FROM job
  WHERE id = ANY(:id::bigint[]) AND state + 0 = 2 AND epoch = (:epoch::bigint[])[width_bucket(id, :id::bigint[])]
  RETURNING *, CASE (:done::bigint[])[width_bucket(id, :id::bigint[])] WHEN 1 THEN 'done' ELSE 'cancelled' END AS outcome
), kept AS (
  INSERT INTO past (id, kind, outcome, key, prio, attempt, crashes, accepted_at, due_at, started_at, settled_at, expires_at, unique_key, note, trace, payload)
  SELECT id, kind, outcome, key, prio, attempt, crashes, accepted_at, due_at,
    CASE WHEN outcome = 'done' OR started_at <= :now THEN started_at END, :now, expires_at, unique_key, note, trace, payload
  FROM gone
)
SELECT outcome, CASE WHEN continuation IS NULL THEN NULL ELSE payload END,
       id, epoch, kind, key, slot, slots, prio, attempt, crashes, continuation, started_at, cancelled_at, state, trace
FROM gone
