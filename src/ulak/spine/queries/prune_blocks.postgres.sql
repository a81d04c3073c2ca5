-- Only from the log's start up to a block that is young enough: one that a caller committed late is older than those before
-- it, and without it there would be a gap. The newest block stays: the next number is counted from it. A block that a
-- follower has not read stays until it is older than `held_before`.
WITH oldest AS (SELECT first, count, at FROM event_block ORDER BY first LIMIT :n),
  slowest AS (SELECT coalesce((SELECT min(position) FROM event_follower), 9223372036854775807) AS position),
  stays AS (SELECT least(
    (SELECT min(first) FROM oldest, slowest
     WHERE at >= :before OR (at >= :held_before AND first + count - 1 > slowest.position)),
    (SELECT max(first) FROM event_block)
  ) AS first)
DELETE FROM event_block WHERE first = ANY(ARRAY(SELECT oldest.first FROM oldest, stays WHERE oldest.first < stays.first))
