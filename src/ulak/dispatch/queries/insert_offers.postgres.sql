INSERT INTO dispatch_offer (id, task, helper, state, opened_at, deadline_at, distance, timer, message, ended_at, released_at, reason)
SELECT * FROM unnest(:id::bigint[], :task::bigint[], :helper::bigint[], :state::text[], :opened_at::bigint[], :deadline_at::bigint[], :distance::bigint[], :timer::bigint[], :message::bigint[], :ended_at::bigint[], :released_at::bigint[], :reason::text[])
