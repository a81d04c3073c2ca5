SELECT task_id, job FROM compute_task WHERE task_id IN (SELECT value FROM json_each(:ids))
