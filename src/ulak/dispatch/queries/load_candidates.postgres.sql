-- Older lists are kept for `explain`; the current one is the task's last.
SELECT task, search, list FROM dispatch_candidate
WHERE task = ANY(:tasks::bigint[]) AND search = (:searches::bigint[])[width_bucket(task, :tasks::bigint[])]
