DELETE FROM breaker WHERE until_at < :before AND destination IN (SELECT destination FROM breaker WHERE until_at < :before ORDER BY destination LIMIT :n)
