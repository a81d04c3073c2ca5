UPDATE job
SET state = :state, due_at = :due_at, owner = NULL, attempt = attempt - :refund, started_at = NULL, slot = :slot,
    note = CASE WHEN length(coalesce(note, '')) < 16000 THEN coalesce(note, '') || :entry ELSE note END
WHERE id = :id
