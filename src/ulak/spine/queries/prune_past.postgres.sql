DELETE FROM past WHERE id = ANY(ARRAY(SELECT id FROM past WHERE id < :oldest_id AND settled_at < :before ORDER BY id LIMIT :n))
