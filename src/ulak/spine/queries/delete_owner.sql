DELETE FROM owner WHERE id = :id
