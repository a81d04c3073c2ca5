DELETE FROM event_block WHERE first IN (
  SELECT first FROM (SELECT first, at FROM event_block ORDER BY first LIMIT :n) AS oldest WHERE at < :before
)
