SELECT id, kind, key, slots, prio, epoch, accepted_at, expires_at, unique_key, continuation, hold, note, trace, payload, error_class, crashes
FROM dead WHERE id = ANY(:ids::bigint[]) ORDER BY id FOR UPDATE
