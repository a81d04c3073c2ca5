-- Only from the log's start up to a block that is young enough: one that a caller committed late is older than those before
-- it, and without it there would be a gap. The newest block stays: the next number is counted from it.
WITH oldest AS (SELECT first, at FROM event_block ORDER BY first LIMIT :n),
  stays AS (SELECT least((SELECT min(first) FROM oldest WHERE at >= :before), (SELECT max(first) FROM event_block)) AS first)
DELETE FROM event_block WHERE first = ANY(ARRAY(SELECT oldest.first FROM oldest, stays WHERE oldest.first < stays.first))
