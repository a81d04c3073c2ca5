SELECT id, kind, state, key, prio, attempt, crashes, accepted_at, due_at, started_at, NULL, expires_at, unique_key, note, NULL, payload, NULL, NULL, trace FROM job WHERE id = :id
