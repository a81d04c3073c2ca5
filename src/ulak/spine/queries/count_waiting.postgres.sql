SELECT kind, state, count(*), min(GREATEST(accepted_at, due_at)) FROM job GROUP BY kind, state
