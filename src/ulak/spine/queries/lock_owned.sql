SELECT id, epoch, kind, key, attempt, crashes, hold, cancelled_at, started_at
FROM job WHERE state = 2 AND owner = :owner AND id IN (SELECT value FROM json_each(:ids)) ORDER BY id
