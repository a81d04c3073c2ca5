DELETE FROM compute_task WHERE task_id IN (SELECT task_id FROM compute_task WHERE job < :before LIMIT :n)
