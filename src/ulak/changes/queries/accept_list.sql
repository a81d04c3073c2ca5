UPDATE changes_registry SET accepted = :accepted, published_at = :now WHERE name = :name
