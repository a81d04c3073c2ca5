DELETE FROM actions_verification WHERE channel_id = :channel
