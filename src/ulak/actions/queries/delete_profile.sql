DELETE FROM recipient_profiles WHERE id = :id
