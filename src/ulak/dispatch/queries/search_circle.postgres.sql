-- LATERAL with OFFSET 0 keeps the planner from walking over all helpers. Parts: 0 who may be asked, in order; 1 how many
-- are left out for a reason; 2 the nearest of those. `eligible.py` says the same in Python.
WITH near AS MATERIALIZED (
  SELECT id, helper, chord, CASE WHEN month = :month THEN completed + :weight * expired ELSE 0 END AS load,
    CASE WHEN month = :month THEN completed ELSE 0 END AS completed, timeouts,
    CASE WHEN active = 0 THEN 'inactive' WHEN doing = 2 THEN 'busy' WHEN doing = 1 THEN 'offered'
      WHEN timeouts >= :pause_after THEN 'paused' WHEN position_at < :fresh_from THEN 'stale'
      WHEN cardinality(:skills::text[]) > 0 AND EXISTS (SELECT FROM unnest(:skills::text[]) AS one WHERE strpos(skills, one) = 0) THEN 'skills'
      WHEN id = ANY(:asked::bigint[]) THEN 'asked' END AS reason
  FROM unnest(:low::bigint[], :high::bigint[]) AS span (low, high), LATERAL (
    SELECT id, helper, active, doing, position_at, timeouts, month, completed, expired, skills, (x - :x) * (x - :x) + (y - :y) * (y - :y) + (z - :z) * (z - :z) AS chord
    FROM dispatch_helper WHERE cell BETWEEN span.low AND span.high
      AND (x - :x) * (x - :x) + (y - :y) * (y - :y) + (z - :z) * (z - :z) <= :chord OFFSET 0
  ) AS there
), parts AS (
  SELECT * FROM (
    SELECT 0 AS part, id, helper, chord, load, completed, timeouts, '' AS reason
    FROM near WHERE reason IS NULL ORDER BY load, chord, helper LIMIT :n
  ) AS ranked
  UNION ALL SELECT 1, 0, '', 0, count(*), 0, 0, reason FROM near WHERE reason IS NOT NULL GROUP BY reason
  UNION ALL SELECT * FROM (
    SELECT 2, id, helper, chord, load, completed, timeouts, reason
    FROM near WHERE reason IS NOT NULL ORDER BY chord, helper LIMIT :shown
  ) AS excluded
)
SELECT part, id, helper, chord, load, completed, timeouts, reason FROM parts
