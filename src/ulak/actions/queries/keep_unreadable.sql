INSERT INTO actions_unreadable (topic, part, position, body, at) VALUES (:topic, :part, :position, :body, :now)
ON CONFLICT (topic, part, position) DO NOTHING
