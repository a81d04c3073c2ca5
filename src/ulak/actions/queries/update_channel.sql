UPDATE recipient_channels SET target = :target, target_meta = :target_meta, enabled = :enabled,
  verify_status = :verify_status, updated_at = :updated_at WHERE id = :id
