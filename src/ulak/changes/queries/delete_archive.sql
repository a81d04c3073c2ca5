DELETE FROM changes_archive WHERE feed = :feed AND pos = :pos
