-- One walk over the circle's ranges in the index that covers them. Parts: 0 who may be asked, in order; 1 how many are
-- left out for a reason; 2 the nearest of those. `eligible.py` says the same in Python.
WITH near AS MATERIALIZED (
  SELECT * FROM (
    SELECT id, helper, (x - :x) * (x - :x) + (y - :y) * (y - :y) + (z - :z) * (z - :z) AS chord,
      CASE WHEN month = :month THEN completed + :weight * expired ELSE 0 END AS load,
      CASE WHEN month = :month THEN completed ELSE 0 END AS completed, timeouts,
      CASE WHEN active = 0 THEN 'inactive' WHEN doing = 2 THEN 'busy' WHEN doing = 1 THEN 'offered'
        WHEN timeouts >= :pause_after THEN 'paused' WHEN position_at < :fresh_from THEN 'stale'
        WHEN :skills <> '[]' AND EXISTS (SELECT 1 FROM json_each(:skills) AS one WHERE instr(skills, one.value) = 0) THEN 'skills'
        WHEN id IN (SELECT value FROM json_each(:asked)) THEN 'asked' END AS reason
    FROM (
      SELECT json_extract(value, '$[0]') AS low, json_extract(value, '$[1]') AS high FROM json_each(:ranges)
    ) AS span CROSS JOIN dispatch_helper INDEXED BY dispatch_helper_cell
    WHERE cell BETWEEN span.low AND span.high
  ) AS around WHERE chord <= :chord
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
SELECT json_group_array(json_array(part, id, helper, chord, load, completed, timeouts, reason)) FROM parts
