SELECT pos, key, change, content_hash, parts, body FROM changes_version
WHERE feed = :feed AND pos > :start AND pos <= :end AND key IN (SELECT value FROM json_each(:keys)) ORDER BY pos LIMIT :n
