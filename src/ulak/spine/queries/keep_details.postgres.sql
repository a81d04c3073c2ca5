UPDATE past SET detail = (:detail::text[])[width_bucket(id, :id::bigint[])] WHERE id = ANY(:id::bigint[])
