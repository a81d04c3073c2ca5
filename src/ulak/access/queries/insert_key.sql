INSERT INTO access_key (id, name, digest, scopes, made_at) VALUES (:id, :name, :digest, :scopes, :made_at)
