UPDATE job
SET state = (:state::bigint[])[width_bucket(id, :id::bigint[])], due_at = (:due_at::bigint[])[width_bucket(id, :id::bigint[])],
    owner = NULL, attempt = attempt - (:refund::bigint[])[width_bucket(id, :id::bigint[])], started_at = NULL,
    slot = (:slot::bigint[])[width_bucket(id, :id::bigint[])],
    note = CASE WHEN length(coalesce(note, '')) < 16000
                THEN coalesce(note, '') || (:entry::text[])[width_bucket(id, :id::bigint[])] ELSE note END
WHERE id = ANY(:id::bigint[])
