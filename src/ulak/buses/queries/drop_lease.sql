DELETE FROM buses_lease WHERE name = :name AND owner = :owner
