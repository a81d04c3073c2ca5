-- OFFSET 0 fences the inner look: planned on a table known to be empty, the join would walk all of it for each row.
SELECT c.id, p.id, p.priority, c.channel_type, c.target, c.target_meta, c.enabled, c.verify_status, p.status, p.time_zone, p.quiet_hours
FROM recipient_channels AS c
CROSS JOIN LATERAL (SELECT * FROM recipient_profiles WHERE id = c.profile_id OFFSET 0) AS p
WHERE c.id = ANY(:ids::bigint[])
