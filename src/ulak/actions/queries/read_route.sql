SELECT id, action_plan_id, step_order, recipient_profile_id, channel_type, enabled, created_at, updated_at FROM action_routes WHERE id = :id
