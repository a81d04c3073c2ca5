SELECT id, task, distance, deadline_at FROM dispatch_offer WHERE state = 'OPEN' AND helper = :helper
