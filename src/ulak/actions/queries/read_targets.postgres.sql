SELECT c.id, p.id, p.priority, c.channel_type, c.target, c.target_meta, c.enabled, c.verify_status, p.status, p.time_zone, p.quiet_hours
FROM recipient_channels AS c JOIN recipient_profiles AS p ON p.id = c.profile_id WHERE c.id = ANY(:ids::bigint[])
