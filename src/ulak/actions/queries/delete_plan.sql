UPDATE action_plans SET deleted_at = :now, updated_at = :now WHERE id = :id AND deleted_at IS NULL
