SELECT id, error_class FROM dead WHERE id IN (SELECT value FROM json_each(:ids)) ORDER BY id
