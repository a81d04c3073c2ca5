SELECT key, body FROM changes_version WHERE feed = :feed AND pos = ANY(:positions::bigint[]) ORDER BY pos
