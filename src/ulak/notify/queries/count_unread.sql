SELECT count(*) FROM notify_inbox WHERE recipient = :recipient AND read_at IS NULL
