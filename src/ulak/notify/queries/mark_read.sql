UPDATE notify_inbox SET read_at = :now WHERE recipient = :recipient AND read_at IS NULL AND (:id IS NULL OR id = :id)
