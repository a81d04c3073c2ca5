-- OFFSET 0 fences the inner looks: planned on tables known to be empty, the joins would walk all of them for each row.
SELECT r.action_plan_id, r.step_order, r.id, r.channel_type, p.id, p.priority, p.device_id, p.time_zone, p.quiet_hours, c.id, c.channel_type, c.target, c.target_meta, c.enabled, c.verify_status
FROM action_routes AS r
CROSS JOIN LATERAL (SELECT * FROM recipient_profiles WHERE id = r.recipient_profile_id OFFSET 0) AS p
LEFT JOIN LATERAL (SELECT * FROM recipient_channels WHERE profile_id = p.id OFFSET 0) AS c ON true
WHERE r.enabled AND p.status AND r.action_plan_id = ANY(:plans::bigint[])
  AND (p.device_id IS NULL OR p.device_id = ANY(:devices::text[]))
