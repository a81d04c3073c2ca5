SELECT id, length(payload) FROM dead WHERE id IN (SELECT value FROM json_each(:ids)) ORDER BY id
