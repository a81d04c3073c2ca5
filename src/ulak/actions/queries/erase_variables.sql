UPDATE actions_run SET variables = '{}' WHERE id IN (SELECT value FROM json_each(:runs))
