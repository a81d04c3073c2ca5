UPDATE dispatch_helper SET
  name = (:name::text[])[width_bucket(id, :id::bigint[])],
  active = (:active::bigint[])[width_bucket(id, :id::bigint[])],
  doing = (:doing::bigint[])[width_bucket(id, :id::bigint[])],
  skills = (:skills::text[])[width_bucket(id, :id::bigint[])],
  language = (:language::text[])[width_bucket(id, :id::bigint[])],
  contact_type = (:contact_type::text[])[width_bucket(id, :id::bigint[])],
  contact = (:contact::text[])[width_bucket(id, :id::bigint[])],
  month = (:month::bigint[])[width_bucket(id, :id::bigint[])],
  completed = (:completed::bigint[])[width_bucket(id, :id::bigint[])],
  expired = (:expired::bigint[])[width_bucket(id, :id::bigint[])],
  timeouts = (:timeouts::bigint[])[width_bucket(id, :id::bigint[])],
  served_at = (:served_at::bigint[])[width_bucket(id, :id::bigint[])]
WHERE id = ANY(:id::bigint[])
