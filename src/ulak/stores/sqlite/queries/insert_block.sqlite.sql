INSERT INTO event_block (first, count, at, token, body) VALUES (:first, :count, :at, :token, :body)
