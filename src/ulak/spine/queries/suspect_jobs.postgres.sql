UPDATE job
SET state = 4, crashes = crashes + 1, owner = NULL, started_at = NULL,
    note = CASE WHEN length(coalesce(note, '')) < 16000
                THEN coalesce(note, '') || (:entry::text[])[width_bucket(id, :id::bigint[])] ELSE note END
WHERE id = ANY(:id::bigint[])
