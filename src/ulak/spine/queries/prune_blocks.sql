-- The newest block stays, however old: the next sequence number continues from it. A block that a follower has not read
-- stays until it is older than `held_before`.
DELETE FROM event_block WHERE first IN (
  SELECT first FROM (SELECT first, count, at FROM event_block ORDER BY first LIMIT :n) AS oldest
  WHERE at < :before AND (at < :held_before OR NOT EXISTS (
    SELECT 1 FROM event_follower WHERE position < oldest.first + oldest.count - 1
  ))
) AND first < (SELECT max(first) FROM event_block)
