INSERT INTO actions_secret (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING
