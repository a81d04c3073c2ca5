INSERT INTO changes_registry (name) VALUES (:name) ON CONFLICT (name) DO NOTHING
