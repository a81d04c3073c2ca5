-- The floor spares a walk over fired timers, which stay in the index while somebody holds an old snapshot.
SELECT due_at FROM job WHERE state = 1 AND due_at > :floor::bigint ORDER BY due_at, id LIMIT 1
