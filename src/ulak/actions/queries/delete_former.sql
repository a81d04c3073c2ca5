DELETE FROM actions_former WHERE run IN (SELECT value FROM json_each(:runs))
