INSERT INTO access_secret (name, value) VALUES (:name, :value) ON CONFLICT DO NOTHING
