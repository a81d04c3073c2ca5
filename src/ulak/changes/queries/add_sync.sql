INSERT INTO changes_sync (id, registry, status, started_at) VALUES (:id, :registry, 'running', :now) ON CONFLICT (id) DO NOTHING
