INSERT INTO recipient_profiles (id, device_id, name, status, priority, time_zone, quiet_hours, created_at, updated_at)
VALUES (:id, :device_id, :name, :status, :priority, :time_zone, :quiet_hours, :created_at, :updated_at)
