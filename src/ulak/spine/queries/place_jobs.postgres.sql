UPDATE job SET state = given.state, slot = given.slot
FROM unnest(:state::bigint[], :slot::bigint[], :id::bigint[]) AS given (state, slot, id) WHERE job.id = given.id
