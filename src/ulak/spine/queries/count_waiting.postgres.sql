SELECT kind, state, count(*), min(CASE WHEN state = 1 THEN due_at ELSE accepted_at END) FROM job GROUP BY kind, state
