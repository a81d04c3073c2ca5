UPDATE job SET state = 0, slot = (:slot::bigint[])[width_bucket(id, :id::bigint[])] WHERE id = ANY(:id::bigint[])
