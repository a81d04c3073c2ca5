SELECT position FROM event_follower WHERE name = :name
