DELETE FROM event_follower WHERE name = :name
