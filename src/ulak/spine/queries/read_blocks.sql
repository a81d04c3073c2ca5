SELECT first, count, at, body FROM event_block
WHERE first >= coalesce((SELECT max(first) FROM event_block WHERE first <= :after), 0)
ORDER BY first LIMIT :n
