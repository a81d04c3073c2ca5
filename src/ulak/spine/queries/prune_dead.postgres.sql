DELETE FROM dead WHERE id = ANY(ARRAY(SELECT id FROM dead WHERE died_at < :before ORDER BY id LIMIT :n))
