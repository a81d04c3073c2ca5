SELECT freed.key, line.id, line.kind, line.prio, line.crashes
FROM unnest(:keys::text[]) AS freed (key)
CROSS JOIN LATERAL (
  SELECT id, kind, prio, crashes, turn, CASE WHEN slots > 1 THEN prio ELSE 0 END AS place FROM job
  WHERE job.key = freed.key AND state = 3
  ORDER BY job.key, (CASE WHEN slots > 1 THEN prio ELSE 0 END), turn LIMIT :most
) AS line
ORDER BY line.place, line.turn
