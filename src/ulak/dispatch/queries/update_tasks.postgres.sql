UPDATE dispatch_task SET
  state = (:state::text[])[width_bucket(id, :id::bigint[])],
  helper = (:helper::bigint[])[width_bucket(id, :id::bigint[])],
  helper_name = (:helper_name::text[])[width_bucket(id, :id::bigint[])],
  searches = (:searches::bigint[])[width_bucket(id, :id::bigint[])],
  max_searches = (:max_searches::bigint[])[width_bucket(id, :id::bigint[])],
  searched_at = (:searched_at::bigint[])[width_bucket(id, :id::bigint[])],
  place = (:place::bigint[])[width_bucket(id, :id::bigint[])],
  timer = (:timer::bigint[])[width_bucket(id, :id::bigint[])],
  assigned_at = (:assigned_at::bigint[])[width_bucket(id, :id::bigint[])],
  ended_at = (:ended_at::bigint[])[width_bucket(id, :id::bigint[])],
  reason = (:reason::text[])[width_bucket(id, :id::bigint[])]
WHERE id = ANY(:id::bigint[]) AND state = (:before::text[])[width_bucket(id, :id::bigint[])]
