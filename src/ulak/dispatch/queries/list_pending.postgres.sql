-- Fenced: without statistics the index of all open offers is taken before that of the tasks that are asked for.
SELECT task, pending.id, dispatch_helper.helper, deadline_at
FROM (SELECT task, id, helper, deadline_at, state FROM dispatch_offer WHERE task = ANY(:tasks::bigint[]) OFFSET 0) AS pending
JOIN dispatch_helper ON dispatch_helper.id = pending.helper
WHERE state = 'OPEN'
