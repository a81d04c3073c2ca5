UPDATE actions_run SET state = given.state, ended_at = given.ended_at, ended_by = given.ended_by
FROM unnest(:state::text[], :ended_at::bigint[], :ended_by::text[], :id::bigint[]) AS given (state, ended_at, ended_by, id)
WHERE actions_run.id = given.id
