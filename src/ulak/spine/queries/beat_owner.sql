UPDATE owner SET lease_at = :lease_at WHERE id = :id
