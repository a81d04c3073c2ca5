UPDATE dispatch_helper SET
  latitude = (:latitude::bigint[])[width_bucket(id, :id::bigint[])],
  longitude = (:longitude::bigint[])[width_bucket(id, :id::bigint[])],
  cell = (:cell::bigint[])[width_bucket(id, :id::bigint[])],
  x = (:x::bigint[])[width_bucket(id, :id::bigint[])],
  y = (:y::bigint[])[width_bucket(id, :id::bigint[])],
  z = (:z::bigint[])[width_bucket(id, :id::bigint[])],
  position_at = (:position_at::bigint[])[width_bucket(id, :id::bigint[])]
WHERE id = ANY(:id::bigint[])
