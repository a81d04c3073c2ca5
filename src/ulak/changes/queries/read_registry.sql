SELECT lease_owner, accepted, seen_at, published_at FROM changes_registry WHERE name = :name
