DELETE FROM dispatch_helper
WHERE id IN (SELECT value FROM json_each(:ids))
