DELETE FROM changes_publication WHERE feed = :feed AND stamp <= :stamp
