SELECT id, subject, body, metadata, created_at, delivered_at, read_at FROM notify_inbox
WHERE recipient = :recipient AND id < :before AND (:unread = 0 OR read_at IS NULL)
ORDER BY id DESC LIMIT :n
