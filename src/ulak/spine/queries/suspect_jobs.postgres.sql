UPDATE job
SET state = 4, crashes = crashes + 1, owner = NULL, started_at = NULL,
    note = CASE WHEN length(coalesce(note, '')) < 16000 THEN coalesce(note, '') || given.entry ELSE note END
FROM unnest(:entry::text[], :id::bigint[]) AS given (entry, id)
WHERE job.id = given.id
