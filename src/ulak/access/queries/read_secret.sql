SELECT value FROM access_secret WHERE name = :name
