SELECT id, profile_id, channel_type, target, target_meta, enabled, verify_status, created_at, updated_at FROM recipient_channels
WHERE id > :after AND profile_id >= :low AND profile_id <= :high ORDER BY id LIMIT :n
