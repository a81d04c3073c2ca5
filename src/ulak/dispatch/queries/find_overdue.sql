SELECT min(deadline_at) FROM dispatch_offer WHERE state = 'OPEN' AND deadline_at <= :now
