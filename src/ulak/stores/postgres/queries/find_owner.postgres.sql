SELECT 1 FROM owner WHERE id = :id AND dead_at IS NULL
