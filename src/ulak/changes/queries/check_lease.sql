SELECT 1 FROM changes_registry WHERE name = :name AND lease_epoch = :lease AND lease_owner IS NOT NULL
