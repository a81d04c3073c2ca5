DELETE FROM past WHERE id IN (SELECT id FROM past WHERE id < :oldest_id AND settled_at < :before ORDER BY id LIMIT :n)
