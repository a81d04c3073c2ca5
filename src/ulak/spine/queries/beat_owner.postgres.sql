-- The dead stay dead: their work was given away.
UPDATE owner SET lease_at = greatest(lease_at, :lease_at) WHERE id = :id AND dead_at IS NULL
