SELECT 1 FROM event_block WHERE first = :first AND token = :token
UNION ALL SELECT 1 FROM meta WHERE name = 'token' AND value = CAST(:token AS TEXT)
