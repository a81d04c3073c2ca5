UPDATE job
SET state = given.state, due_at = given.due_at, owner = NULL, attempt = attempt - given.refund, started_at = NULL,
    note = CASE WHEN length(coalesce(note, '')) < 16000 THEN coalesce(note, '') || given.entry ELSE note END
FROM unnest(:state::bigint[], :due_at::bigint[], :refund::bigint[], :entry::text[], :id::bigint[]) AS given (state, due_at, refund, entry, id)
WHERE job.id = given.id
