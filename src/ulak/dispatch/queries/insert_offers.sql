INSERT INTO dispatch_offer (id, task, helper, state, opened_at, deadline_at, distance, timer, message, ended_at, released_at, reason)
VALUES :rows
