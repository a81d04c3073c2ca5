INSERT INTO breaker (destination, state, failures, changed_at, until_at) VALUES (:destination, :state, :failures, :now, :until_at)
ON CONFLICT (destination) DO UPDATE SET state = excluded.state, failures = excluded.failures, changed_at = excluded.changed_at, until_at = excluded.until_at
