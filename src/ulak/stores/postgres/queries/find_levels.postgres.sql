-- One look along job_ready for each level; the floors are the claim's.
SELECT wanted.kind, wanted.prio
FROM unnest(:kinds::text[], :prios::smallint[], :floors::bigint[]) AS wanted (kind, prio, floor)
CROSS JOIN LATERAL (
  SELECT 1 FROM job WHERE kind = wanted.kind AND prio = wanted.prio AND state = 0 AND turn > wanted.floor
  ORDER BY kind, prio, turn LIMIT 1
) AS first
