-- Within the caller's own transaction: what it has just put in was never seen by anybody.
DELETE FROM job WHERE id = ANY(:ids::bigint[]) RETURNING id
