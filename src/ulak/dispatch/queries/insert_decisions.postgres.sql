INSERT INTO dispatch_decision (task, search, at, radius, found, excluded, counts)
SELECT * FROM unnest(:task::bigint[], :search::bigint[], :at::bigint[], :radius::bigint[], :found::bigint[], :excluded::bytea[], :counts::text[])
