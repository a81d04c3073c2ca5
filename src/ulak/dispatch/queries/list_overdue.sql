SELECT task, id FROM dispatch_offer WHERE state = 'OPEN' AND deadline_at < :before ORDER BY deadline_at LIMIT :n
