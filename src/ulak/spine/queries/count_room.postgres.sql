-- Live jobs by kind and credit held by living owners, in one snapshot: with `capacity` locked, the bound minus both is free.
SELECT 'live', kind, count(*) FROM job GROUP BY kind
UNION ALL
SELECT 'held', pool, sum(held)
FROM (
  SELECT pool, held FROM credit JOIN owner ON owner.id = credit.owner
  UNION ALL
  SELECT added.pool, added.number
  FROM event_inbox JOIN owner ON owner.id = event_inbox.owner, unnest(credit_pools, credits) AS added (pool, number)
) AS holding
GROUP BY pool
