UPDATE dispatch_offer SET
  state = (:state::text[])[width_bucket(id, :id::bigint[])],
  ended_at = (:ended_at::bigint[])[width_bucket(id, :id::bigint[])],
  released_at = (:released_at::bigint[])[width_bucket(id, :id::bigint[])],
  reason = (:reason::text[])[width_bucket(id, :id::bigint[])]
WHERE id = ANY(:id::bigint[]) AND state = (:before::text[])[width_bucket(id, :id::bigint[])] AND released_at IS NULL
