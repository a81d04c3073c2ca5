SELECT p.id, p.priority, p.device_id, p.time_zone, p.quiet_hours, c.id, c.channel_type, c.target, c.target_meta, c.enabled, c.verify_status
FROM recipient_profiles AS p LEFT JOIN recipient_channels AS c ON c.profile_id = p.id
WHERE p.status AND p.device_id IS NOT NULL AND p.device_id = ANY(:devices::text[])
