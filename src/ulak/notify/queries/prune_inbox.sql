DELETE FROM notify_inbox WHERE id IN (SELECT id FROM notify_inbox WHERE id < :before ORDER BY id LIMIT :n)
