SELECT id, epoch, kind, key, attempt, crashes, hold, cancelled_at, started_at
FROM job INDEXED BY job_owner WHERE state = 2 AND owner = :owner ORDER BY id LIMIT :n
