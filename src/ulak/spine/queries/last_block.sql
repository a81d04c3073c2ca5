SELECT first, count, at FROM event_block ORDER BY first DESC LIMIT 1
