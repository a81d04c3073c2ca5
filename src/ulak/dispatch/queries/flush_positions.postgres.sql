-- A helper that another transaction holds is left for the next time: hints wait for nobody.
WITH free AS (
  SELECT id FROM dispatch_helper WHERE id = ANY(:id::bigint[]) FOR UPDATE SKIP LOCKED
), moved AS (
  UPDATE dispatch_helper SET
    latitude = (:latitude::bigint[])[width_bucket(id, :id::bigint[])],
    longitude = (:longitude::bigint[])[width_bucket(id, :id::bigint[])],
    cell = (:cell::bigint[])[width_bucket(id, :id::bigint[])],
    x = (:x::bigint[])[width_bucket(id, :id::bigint[])],
    y = (:y::bigint[])[width_bucket(id, :id::bigint[])],
    z = (:z::bigint[])[width_bucket(id, :id::bigint[])],
    position_at = (:position_at::bigint[])[width_bucket(id, :id::bigint[])]
  WHERE id = ANY(ARRAY(SELECT id FROM free))
    AND (position_at IS NULL OR position_at <= (:position_at::bigint[])[width_bucket(id, :id::bigint[])])
)
SELECT id FROM free
