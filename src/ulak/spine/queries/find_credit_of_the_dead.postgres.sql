SELECT 1 FROM credit WHERE held <> 0 AND owner NOT IN (SELECT id FROM owner) LIMIT 1
