INSERT INTO recipient_channels (id, profile_id, channel_type, target, target_meta, enabled, verify_status, created_at, updated_at)
VALUES (:id, :profile_id, :channel_type, :target, :target_meta, :enabled, :verify_status, :created_at, :updated_at)
