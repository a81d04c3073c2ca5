SELECT task_id, job FROM compute_task WHERE task_id = ANY(:ids::text[])
