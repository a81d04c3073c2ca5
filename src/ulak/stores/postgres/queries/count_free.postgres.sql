-- In one snapshot, by pool: jobs (a kind's active ones, and all that live), credit held by living owners, and what is free
-- beyond the bound. Every transaction keeps their sum at zero; what is missing from it was lost with a process.
SELECT kind, count(*) FROM job WHERE state IN (0, 2, 4) GROUP BY kind
UNION ALL
SELECT kind || :live::text, count(*) FROM job GROUP BY kind
UNION ALL
SELECT pool, sum(held)
FROM (
  SELECT pool, held FROM credit JOIN owner ON owner.id = credit.owner AND dead_at IS NULL
  UNION ALL
  SELECT added.pool, added.number
  FROM event_outbox JOIN owner ON owner.id = event_outbox.owner AND dead_at IS NULL,
    unnest(credit_pools, credits) AS added (pool, number)
) AS holding
GROUP BY pool
UNION ALL
SELECT pool, free - bound FROM capacity
