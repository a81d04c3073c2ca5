UPDATE job SET state = 4, owner = NULL WHERE id IN (SELECT value FROM json_each(:ids))
