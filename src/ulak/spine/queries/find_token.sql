SELECT 1 FROM event_block WHERE first = :first AND token = :token
