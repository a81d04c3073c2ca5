DELETE FROM breaker WHERE destination = :destination
