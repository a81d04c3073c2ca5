SELECT id FROM actions_run WHERE id < :before AND ended_at IS NOT NULL ORDER BY id LIMIT :n
