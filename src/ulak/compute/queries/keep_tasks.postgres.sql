INSERT INTO compute_task (task_id, job) SELECT * FROM unnest(:task_id::text[], :job::bigint[])
