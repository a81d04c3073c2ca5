-- Older lists are kept for `explain`; the current one is the task's last.
SELECT task, search, list FROM json_each(:tasks) AS one CROSS JOIN dispatch_candidate ON task = one.value
WHERE search = json_extract(:searches, '$[' || one.key || ']')
