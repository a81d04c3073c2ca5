-- The time is asked for twice: another process may have opened one of them again meanwhile.
DELETE FROM breaker WHERE until_at < :before AND destination = ANY(ARRAY(
  SELECT destination FROM breaker WHERE until_at < :before ORDER BY destination LIMIT :n
))
