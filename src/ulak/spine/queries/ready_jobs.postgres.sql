UPDATE job
SET state = CASE WHEN crashes = 0 THEN 0 ELSE 4 END, turn = (:turn::bigint[])[width_bucket(id, :id::bigint[])]
WHERE id = ANY(:id::bigint[])
