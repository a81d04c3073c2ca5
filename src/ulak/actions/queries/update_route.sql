UPDATE action_routes SET step_order = :step_order, recipient_profile_id = :recipient_profile_id,
  channel_type = :channel_type, enabled = :enabled, updated_at = :updated_at WHERE id = :id
