DELETE FROM notify_attempt WHERE id = ANY(ARRAY(SELECT id FROM notify_attempt WHERE at < :before LIMIT :n))
