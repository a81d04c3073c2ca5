INSERT INTO dispatch_candidate (task, search, list)
SELECT * FROM unnest(:task::bigint[], :search::bigint[], :list::bytea[])
