SELECT id, name, digest, scopes, made_at, revoked_at FROM access_key ORDER BY made_at, id
