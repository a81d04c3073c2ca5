DELETE FROM changes_title WHERE feed = :feed AND pos = ANY(:positions::bigint[])
