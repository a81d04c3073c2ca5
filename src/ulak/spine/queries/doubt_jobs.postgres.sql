UPDATE job
SET crashes = GREATEST(crashes + (:deaths::bigint[])[width_bucket(id, :id::bigint[])], 1), started_at = NULL,
    note = CASE WHEN length(coalesce(note, '')) < 16000
                THEN coalesce(note, '') || (:entry::text[])[width_bucket(id, :id::bigint[])] ELSE note END
WHERE id = ANY(:id::bigint[])
