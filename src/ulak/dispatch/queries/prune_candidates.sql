DELETE FROM dispatch_candidate
WHERE task IN (SELECT value FROM json_each(:ids))
