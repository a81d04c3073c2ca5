-- In one snapshot: live jobs by kind, credit held by living owners, and what is free beyond the bound. Every transaction
-- keeps their sum at zero; what is missing from it was lost with a process.
SELECT 'live', kind, count(*) FROM job GROUP BY kind
UNION ALL
SELECT 'held', pool, sum(held)
FROM (
  SELECT pool, held FROM credit JOIN owner ON owner.id = credit.owner AND dead_at IS NULL
  UNION ALL
  SELECT added.pool, added.number
  FROM event_inbox JOIN owner ON owner.id = event_inbox.owner AND dead_at IS NULL,
    unnest(credit_pools, credits) AS added (pool, number)
) AS holding
GROUP BY pool
UNION ALL
SELECT 'free', pool, free - bound FROM capacity
