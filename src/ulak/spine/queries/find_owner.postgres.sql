SELECT 1 FROM owner WHERE id = :id
