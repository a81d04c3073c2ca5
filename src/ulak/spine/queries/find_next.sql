-- The first in line of each key, as many as may be needed: a limit of its own for each can't be said here.
SELECT freed.value, job.id, job.kind, job.prio, job.crashes
FROM json_each(:keys) AS freed
JOIN job ON job.id IN (
  SELECT id FROM job AS line INDEXED BY job_behind WHERE line.key = freed.value AND line.state = 3
  ORDER BY CASE WHEN line.slots > 1 THEN line.prio ELSE 0 END, line.turn LIMIT :most
)
ORDER BY CASE WHEN job.slots > 1 THEN job.prio ELSE 0 END, job.turn
