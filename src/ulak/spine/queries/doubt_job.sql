UPDATE job SET crashes = crashes + 1 WHERE id = :id RETURNING hold
