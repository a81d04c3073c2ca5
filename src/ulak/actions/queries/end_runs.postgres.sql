UPDATE actions_run
SET state = (:state::text[])[width_bucket(id, :id::bigint[])], ended_at = (:ended_at::bigint[])[width_bucket(id, :id::bigint[])],
    ended_by = (:ended_by::text[])[width_bucket(id, :id::bigint[])]
WHERE id = ANY(:id::bigint[])
