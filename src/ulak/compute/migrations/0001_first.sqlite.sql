-- By which id a caller knows a task; the job has one of its own.
CREATE TABLE compute_task (task_id TEXT NOT NULL PRIMARY KEY, job INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX compute_task_job ON compute_task (job);
