SELECT 1 FROM event_outbox WHERE token = :token UNION ALL SELECT 1 FROM event_block WHERE token = :token
