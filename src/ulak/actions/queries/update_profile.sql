UPDATE recipient_profiles SET device_id = :device_id, name = :name, status = :status, priority = :priority,
  time_zone = :time_zone, quiet_hours = :quiet_hours, updated_at = :updated_at WHERE id = :id
