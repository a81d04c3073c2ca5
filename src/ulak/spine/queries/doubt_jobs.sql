UPDATE job
SET crashes = MAX(crashes + :deaths, 1), started_at = NULL,
    note = CASE WHEN length(coalesce(note, '')) < 16000 THEN coalesce(note, '') || :entry ELSE note END
WHERE id = :id
