DELETE FROM dead WHERE id = ANY(ARRAY(SELECT id FROM dead WHERE id < :oldest_id AND died_at < :before ORDER BY id LIMIT :n))
