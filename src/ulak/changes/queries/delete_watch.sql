DELETE FROM changes_watch WHERE feed = :feed AND id = :id
