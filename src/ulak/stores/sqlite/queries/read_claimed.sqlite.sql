-- In the order of the ids that are given, which is that of the turns.
SELECT json_group_array(json_array(
  job.id, epoch, kind, job.key, prio, attempt, crashes, accepted_at, due_at, expires_at, CAST(payload AS TEXT), trace
)) FROM json_each(:ids) AS wanted CROSS JOIN job ON job.id = wanted.value
