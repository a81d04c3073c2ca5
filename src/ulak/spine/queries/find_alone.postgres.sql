SELECT id FROM job WHERE state = 4 AND crashes >= :least LIMIT 1
