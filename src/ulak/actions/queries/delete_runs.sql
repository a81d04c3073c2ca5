DELETE FROM actions_run WHERE id IN (SELECT value FROM json_each(:ids))
