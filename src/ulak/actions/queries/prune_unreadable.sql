DELETE FROM actions_unreadable WHERE (topic, part, position) IN (
  SELECT topic, part, position FROM actions_unreadable WHERE at < :before ORDER BY at LIMIT :n
)
