INSERT INTO action_plans (id, name, critical, version, created_at, updated_at) VALUES (:id, :name, :critical, :version, :now, :now)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, critical = excluded.critical, version = excluded.version,
  updated_at = excluded.updated_at, deleted_at = NULL
