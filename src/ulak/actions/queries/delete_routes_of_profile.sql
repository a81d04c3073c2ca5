DELETE FROM action_routes WHERE recipient_profile_id = :profile
