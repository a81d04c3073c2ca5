-- Each state along its own index, in which rows of a kind need no sorting: a walk over the table takes more than twice as
-- long with a large backlog. Of a level of ready jobs the one whose turn is next stands for all: if it was
-- put off, another may wait for longer, and none is said to wait for longer than it does.
SELECT level.kind, 0, sum(number), min(max(accepted_at, due_at))
FROM (
  SELECT kind, count(*) AS number, min(turn), id AS oldest FROM job INDEXED BY job_ready WHERE state = 0 GROUP BY kind, prio
) AS level CROSS JOIN job ON job.id = level.oldest
GROUP BY level.kind
UNION ALL
SELECT kind, 1, count(*), min(due_at) FROM job INDEXED BY job_due WHERE state = 1 GROUP BY kind
UNION ALL
SELECT kind, 2, count(*), min(max(accepted_at, due_at)) FROM job INDEXED BY job_owner WHERE state = 2 GROUP BY kind
UNION ALL
SELECT kind, 3, count(*), min(max(accepted_at, due_at)) FROM job INDEXED BY job_behind WHERE state = 3 GROUP BY kind
UNION ALL
SELECT kind, 4, count(*), min(max(accepted_at, due_at)) FROM job INDEXED BY job_suspect WHERE state = 4 GROUP BY kind
