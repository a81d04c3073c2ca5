INSERT INTO compute_task (task_id, job) VALUES :rows
