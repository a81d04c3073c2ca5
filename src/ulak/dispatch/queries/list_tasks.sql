SELECT id, requester, category, latitude, longitude, radius, deadline, width, created_at, description, skills, language, contact_type, contact, state, helper, helper_name, searches, max_searches, searched_at, place, timer, assigned_at, ended_at, reason, once, digest, trace
FROM dispatch_task WHERE id < :before
ORDER BY id DESC LIMIT :n
