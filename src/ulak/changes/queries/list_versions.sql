SELECT pos, key, change, content_hash, parts, body FROM changes_version WHERE feed = :feed AND pos > :start AND pos <= :end ORDER BY pos
