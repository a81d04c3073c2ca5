-- OFFSET 0 fences the inner look: planned on a table known to be empty, the join would walk all of it for each row.
SELECT p.id, p.priority, p.device_id, p.time_zone, p.quiet_hours, c.id, c.channel_type, c.target, c.target_meta, c.enabled, c.verify_status
FROM recipient_profiles AS p
LEFT JOIN LATERAL (SELECT * FROM recipient_channels WHERE profile_id = p.id OFFSET 0) AS c ON true
WHERE p.status AND p.device_id IS NOT NULL AND p.device_id = ANY(:devices::text[])
