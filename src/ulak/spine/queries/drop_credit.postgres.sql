DELETE FROM credit WHERE owner NOT IN (SELECT id FROM owner)
