DELETE FROM action_routes WHERE id = :id
