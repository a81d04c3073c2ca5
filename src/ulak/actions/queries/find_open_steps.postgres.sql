-- OFFSET 0 fences both looks: planned on tables known to be empty, the join would walk all steps for each run.
SELECT r.id, s.step_order, s.job, s.timer
FROM (SELECT id FROM actions_run WHERE ended_at IS NULL AND id > :after ORDER BY id OFFSET 0) AS r
CROSS JOIN LATERAL (
  SELECT step_order, job, timer FROM actions_step WHERE run = r.id AND ended_at IS NULL ORDER BY step_order OFFSET 0
) AS s
ORDER BY r.id, s.step_order LIMIT :n
