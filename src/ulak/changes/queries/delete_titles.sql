DELETE FROM changes_title WHERE feed = :feed AND pos IN (SELECT value FROM json_each(:positions))
