-- By which id a caller knows a task; the job has one of its own.
CREATE TABLE compute_task (task_id text NOT NULL PRIMARY KEY, job bigint NOT NULL);
CREATE INDEX compute_task_job ON compute_task (job);
