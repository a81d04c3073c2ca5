SELECT id, epoch, kind, key, attempt, crashes, hold, cancelled_at, started_at
FROM job WHERE state = 2 AND owner = :owner LIMIT :n
