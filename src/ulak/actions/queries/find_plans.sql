SELECT id, version, critical FROM action_plans WHERE deleted_at IS NULL AND id IN (SELECT value FROM json_each(:ids))
