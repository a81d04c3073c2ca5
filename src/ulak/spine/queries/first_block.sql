SELECT first FROM event_block ORDER BY first LIMIT 1
