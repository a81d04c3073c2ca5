DELETE FROM changes_sync WHERE ended_at < :before AND held = 0
