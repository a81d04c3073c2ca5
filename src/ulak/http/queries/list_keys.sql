SELECT id, name, digest, scopes, made_at, revoked_at FROM api_key ORDER BY made_at, id
