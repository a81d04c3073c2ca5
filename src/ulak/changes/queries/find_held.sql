SELECT id FROM changes_sync WHERE registry = :registry AND held = 1 LIMIT 1
