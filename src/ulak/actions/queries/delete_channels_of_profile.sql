DELETE FROM recipient_channels WHERE profile_id = :profile
