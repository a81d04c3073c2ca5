SELECT id, profile_id, channel_type, target, target_meta, enabled, verify_status, created_at, updated_at FROM recipient_channels WHERE id = :id
