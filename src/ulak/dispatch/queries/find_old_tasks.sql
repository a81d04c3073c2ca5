SELECT id FROM dispatch_task WHERE ended_at < :before ORDER BY ended_at LIMIT :n
