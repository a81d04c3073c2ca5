SELECT id, kind, 'dead', key, prio, attempt, crashes, accepted_at, due_at, started_at, died_at, expires_at, unique_key, note, cause, payload, code, error_class, trace FROM dead WHERE id = :id
