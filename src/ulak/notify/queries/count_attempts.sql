SELECT url, COUNT(*), SUM(CASE WHEN code IS NULL THEN 0 ELSE 1 END) FROM notify_attempt WHERE at >= :since GROUP BY url
