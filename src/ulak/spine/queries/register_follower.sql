INSERT INTO event_follower (name, position, advanced_at) VALUES (:name, :position, :now) ON CONFLICT DO NOTHING
