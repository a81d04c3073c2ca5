SELECT id, task, helper, state, opened_at, deadline_at, distance, timer, message, ended_at, released_at, reason
FROM dispatch_offer
WHERE task IN (SELECT value FROM json_each(:tasks))
