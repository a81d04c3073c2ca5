-- Without an order: the pinned planner would walk the primary key for it.
SELECT id, task, helper, state, opened_at, deadline_at, distance, timer, message, ended_at, released_at, reason
FROM dispatch_offer
WHERE task = ANY(:tasks::bigint[])
