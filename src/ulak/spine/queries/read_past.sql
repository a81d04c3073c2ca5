SELECT id, kind, outcome, key, prio, attempt, crashes, accepted_at, due_at, started_at, settled_at, expires_at, unique_key, note, detail, payload, NULL, NULL, trace FROM past WHERE id = :id
