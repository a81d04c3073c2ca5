-- Who holds one of these rows is a batch like this one, which ends by itself: waiting for it is better than to run again.
SELECT id, helper, name, active, doing, latitude, longitude, cell, x, y, z, position_at, skills, language, contact_type, contact, month, completed, expired, timeouts, served_at
FROM dispatch_helper
WHERE id = ANY(:ids::bigint[]) AND (SELECT set_config('lock_timeout', '5s', true)) IS NOT NULL ORDER BY id FOR UPDATE
