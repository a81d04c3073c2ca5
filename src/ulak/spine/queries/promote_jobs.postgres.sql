UPDATE job SET state = 0, slot = given.slot
FROM unnest(:slot::bigint[], :id::bigint[]) AS given (slot, id) WHERE job.id = given.id
