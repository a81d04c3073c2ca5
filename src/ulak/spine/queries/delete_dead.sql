DELETE FROM dead WHERE id IN (SELECT value FROM json_each(:ids))
