SELECT task_id FROM compute_task WHERE job = :job
