UPDATE changes_registry SET lease_owner = NULL, seen_at = :now WHERE name = :name AND lease_epoch = :lease
