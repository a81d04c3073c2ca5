SELECT s.run, s.step_order, s.job, s.timer FROM actions_run AS r JOIN actions_step AS s ON s.run = r.id
WHERE r.ended_at IS NULL AND r.id > :after AND s.ended_at IS NULL AND s.due_at < :before ORDER BY r.id, s.step_order LIMIT :n
