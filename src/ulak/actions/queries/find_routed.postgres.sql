SELECT r.action_plan_id, r.step_order, r.id, r.channel_type, p.id, p.priority, p.device_id, p.time_zone, p.quiet_hours, c.id, c.channel_type, c.target, c.target_meta, c.enabled, c.verify_status
FROM action_routes AS r JOIN recipient_profiles AS p ON p.id = r.recipient_profile_id
LEFT JOIN recipient_channels AS c ON c.profile_id = p.id
WHERE r.enabled AND p.status AND r.action_plan_id = ANY(:plans::bigint[])
  AND (p.device_id IS NULL OR p.device_id = ANY(:devices::text[]))
