SELECT 1 FROM credit WHERE held <> 0 AND owner NOT IN (SELECT id FROM owner WHERE dead_at IS NULL) LIMIT 1
