-- The newest block stays: the next number is counted from it.
DELETE FROM event_block WHERE first = ANY(ARRAY(
  SELECT first FROM (SELECT first, at FROM event_block ORDER BY first LIMIT :n) AS oldest
  WHERE at < :before AND first < (SELECT max(first) FROM event_block)
))
