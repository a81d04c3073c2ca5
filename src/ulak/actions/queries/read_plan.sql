SELECT id, name, critical, version, created_at, updated_at, deleted_at FROM action_plans WHERE id = :id
