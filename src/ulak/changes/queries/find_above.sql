SELECT pos FROM changes_version WHERE feed = :feed AND pos > :head ORDER BY pos DESC LIMIT :n
