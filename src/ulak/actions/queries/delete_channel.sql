DELETE FROM recipient_channels WHERE id = :id
