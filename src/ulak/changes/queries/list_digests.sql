SELECT verdict, digest FROM changes_sync WHERE registry = :registry AND id < :before AND digest IS NOT NULL ORDER BY id DESC LIMIT :n
