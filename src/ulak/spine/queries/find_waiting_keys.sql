SELECT DISTINCT key FROM job
WHERE key IS NOT NULL AND state <> 2 AND id IN (SELECT value FROM json_each(:ids)) ORDER BY key
