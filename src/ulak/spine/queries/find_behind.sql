SELECT job.key, job.id, job.kind, job.prio
FROM json_each(:keys) AS freed
JOIN job ON job.id = (
  SELECT id FROM job INDEXED BY job_behind WHERE key = freed.value AND state = 3
  ORDER BY CASE WHEN slots > 1 THEN prio ELSE 0 END, turn LIMIT 1
)
