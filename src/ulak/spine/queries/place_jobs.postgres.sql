UPDATE job
SET state = (:state::bigint[])[width_bucket(id, :id::bigint[])], slot = (:slot::bigint[])[width_bucket(id, :id::bigint[])],
    turn = (:turn::bigint[])[width_bucket(id, :id::bigint[])]
WHERE id = ANY(:id::bigint[])
