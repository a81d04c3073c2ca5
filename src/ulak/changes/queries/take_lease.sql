UPDATE changes_registry SET lease_owner = :owner, lease_epoch = lease_epoch + 1 WHERE name = :name
