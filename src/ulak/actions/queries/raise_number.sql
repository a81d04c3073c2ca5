INSERT INTO actions_counter (name, value) VALUES (:name, :value)
ON CONFLICT (name) DO UPDATE SET value = CASE WHEN actions_counter.value < excluded.value THEN excluded.value ELSE actions_counter.value END
