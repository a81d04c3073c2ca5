DELETE FROM credit WHERE owner NOT IN (SELECT id FROM owner WHERE dead_at IS NULL)
