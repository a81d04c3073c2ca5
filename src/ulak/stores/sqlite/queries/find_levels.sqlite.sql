SELECT json_group_array(json(value)) FROM json_each(:levels) WHERE EXISTS (
  SELECT 1 FROM job INDEXED BY job_ready
  WHERE kind = json_extract(value, '$[0]') AND prio = json_extract(value, '$[1]') AND state = 0
)
