SELECT topic, part, position, body, at FROM actions_unreadable ORDER BY at, topic, part, position LIMIT :n
