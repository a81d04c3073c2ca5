-- Taken when nobody has it, when its time is over, or when it is ours already.
INSERT INTO buses_lease (name, owner, until_at) VALUES (:name, :owner, :until_at)
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until_at = excluded.until_at
WHERE buses_lease.owner = excluded.owner OR buses_lease.until_at <= :now
