INSERT INTO dead (id, kind, key, slots, prio, attempt, crashes, epoch, accepted_at, due_at, started_at, died_at, expires_at, unique_key, continuation, hold, cause, error_class, code, note, trace, payload)
SELECT id, kind, key, slots, prio, attempt, crashes, epoch, accepted_at, due_at, started_at, :now, expires_at, unique_key, continuation, hold, :cause, :error_class, :code, note, trace, payload
FROM job WHERE id = :id
