SELECT lease_owner, lease_epoch, accepted FROM changes_registry WHERE name = :name FOR UPDATE
