DELETE FROM notify_attempt WHERE id IN (SELECT id FROM notify_attempt WHERE at < :before LIMIT :n)
