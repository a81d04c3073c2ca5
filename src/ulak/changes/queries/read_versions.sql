SELECT key, body FROM changes_version WHERE feed = :feed AND pos IN (SELECT value FROM json_each(:positions)) ORDER BY pos
