INSERT INTO actions_counter (name, value) VALUES (:name, 1)
ON CONFLICT (name) DO UPDATE SET value = actions_counter.value + 1 RETURNING value
