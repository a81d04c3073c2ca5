SELECT name, position, advanced_at FROM event_follower ORDER BY position, name
