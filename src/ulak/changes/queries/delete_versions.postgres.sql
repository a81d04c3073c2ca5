DELETE FROM changes_version WHERE feed = :feed AND pos = ANY(:positions::bigint[])
