UPDATE action_plans SET name = :name, critical = :critical, updated_at = :now WHERE id = :id AND deleted_at IS NULL
