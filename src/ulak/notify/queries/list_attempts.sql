SELECT id, job, number, at, millis, status, code FROM notify_attempt
WHERE url = :url AND id < :before ORDER BY id DESC LIMIT :n
