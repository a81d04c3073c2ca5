-- The newest block stays, however old: the next sequence number continues from it.
DELETE FROM event_block WHERE first IN (
  SELECT first FROM (SELECT first, at FROM event_block ORDER BY first LIMIT :n) AS oldest WHERE at < :before
) AND first < (SELECT max(first) FROM event_block)
