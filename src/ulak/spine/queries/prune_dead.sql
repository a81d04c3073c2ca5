DELETE FROM dead WHERE id IN (SELECT id FROM dead WHERE died_at < :before ORDER BY id LIMIT :n)
