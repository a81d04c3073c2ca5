SELECT id, key FROM job WHERE expires_at <= :now AND state <> 2 ORDER BY expires_at LIMIT :n
