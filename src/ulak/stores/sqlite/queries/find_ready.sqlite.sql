SELECT json_group_array(id) FROM (
  SELECT id FROM job INDEXED BY job_ready WHERE kind = :kind AND prio = :prio AND state = 0 ORDER BY turn LIMIT :n
)
