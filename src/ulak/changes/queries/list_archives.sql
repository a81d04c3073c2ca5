SELECT feed, pos, name, stamp, count, state_hash, bytes, digest, made_at FROM changes_archive WHERE feed = :feed ORDER BY pos DESC LIMIT :n
