SELECT count(*) FROM (SELECT 1 FROM actions_run WHERE ended_at IS NULL LIMIT :n) AS unfinished
