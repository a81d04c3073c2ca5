-- Older lists are kept for `explain`; the current one is the task's last.
SELECT task, search, list FROM dispatch_candidate JOIN json_each(:tasks) AS one ON task = one.value
WHERE search = json_extract(:searches, '$[' || one.key || ']')
