SELECT lease_owner, lease_epoch, accepted, seen_at, published_at FROM changes_registry WHERE name = :name
