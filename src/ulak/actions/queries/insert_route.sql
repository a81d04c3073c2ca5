INSERT INTO action_routes (id, action_plan_id, step_order, recipient_profile_id, channel_type, enabled, created_at, updated_at)
VALUES (:id, :action_plan_id, :step_order, :recipient_profile_id, :channel_type, :enabled, :created_at, :updated_at)
