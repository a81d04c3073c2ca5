SELECT id, kind, key, slots, prio, epoch, accepted_at, expires_at, unique_key, continuation, hold, note, trace, payload, error_class, crashes
FROM dead WHERE id IN (SELECT value FROM json_each(:ids)) ORDER BY id
