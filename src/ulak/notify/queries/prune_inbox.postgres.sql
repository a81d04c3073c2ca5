DELETE FROM notify_inbox WHERE id = ANY(ARRAY(SELECT id FROM notify_inbox WHERE id < :before ORDER BY id LIMIT :n))
