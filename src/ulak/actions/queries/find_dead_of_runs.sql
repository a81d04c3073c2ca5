SELECT job FROM actions_step WHERE reason IS NOT NULL AND run IN (SELECT value FROM json_each(:runs))
