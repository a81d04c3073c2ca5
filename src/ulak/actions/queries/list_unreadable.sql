SELECT topic, part, position, length(body), at FROM actions_unreadable
WHERE (topic, part, position) > (:topic, :part, :position) ORDER BY topic, part, position LIMIT :n
