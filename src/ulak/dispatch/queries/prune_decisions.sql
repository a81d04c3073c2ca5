DELETE FROM dispatch_decision
WHERE task IN (SELECT value FROM json_each(:ids))
