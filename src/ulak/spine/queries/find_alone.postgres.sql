SELECT DISTINCT kind FROM job WHERE state = 4 AND crashes >= :least
