SELECT id, device_id, name, status, priority, time_zone, quiet_hours, created_at, updated_at FROM recipient_profiles WHERE id = :id
