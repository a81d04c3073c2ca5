SELECT id, subject, body, metadata, created_at, delivered_at, read_at FROM notify_inbox WHERE recipient = :recipient AND id = :id
