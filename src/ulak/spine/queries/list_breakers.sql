SELECT destination, state, failures, until_at FROM breaker ORDER BY destination
