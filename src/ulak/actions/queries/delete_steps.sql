DELETE FROM actions_step WHERE run IN (SELECT value FROM json_each(:runs))
