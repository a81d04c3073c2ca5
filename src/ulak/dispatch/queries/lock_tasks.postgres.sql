-- Who holds one of these rows is a batch like this one, which ends by itself: waiting for it is better than to run again.
SELECT id, requester, category, latitude, longitude, radius, deadline, width, created_at, description, skills, language, contact_type, contact, state, helper, helper_name, searches, max_searches, searched_at, place, timer, assigned_at, ended_at, reason, once, digest, trace
FROM dispatch_task
WHERE id = ANY(:ids::bigint[]) AND (SELECT set_config('lock_timeout', '5s', true)) IS NOT NULL ORDER BY id FOR UPDATE
