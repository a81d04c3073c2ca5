SELECT value FROM actions_secret WHERE name = :name
