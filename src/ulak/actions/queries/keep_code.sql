INSERT INTO actions_code (address, sent_at) VALUES (:address, :sent_at)
