SELECT pos, key, change, content_hash, parts, body FROM changes_version
WHERE feed = :feed AND pos > :start AND pos <= :end AND key = ANY(:keys::text[]) ORDER BY pos LIMIT :n
