UPDATE changes_sync SET held = 0 WHERE registry = :registry AND held = 1
