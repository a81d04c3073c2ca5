SELECT p.id, p.name FROM recipient_profiles AS p
WHERE p.status AND p.id > :after
  AND (p.device_id IS NOT NULL OR 0 < (SELECT COUNT(*) FROM action_routes AS r WHERE r.recipient_profile_id = p.id AND r.enabled))
  AND NOT EXISTS (
    SELECT 1 FROM recipient_channels AS c WHERE c.profile_id = p.id AND c.enabled AND c.verify_status = 'verified'
      AND (p.device_id IS NOT NULL OR 0 < (
        SELECT COUNT(*) FROM action_routes AS r
        JOIN action_plans AS a ON a.id = r.action_plan_id
        JOIN action_plan_steps AS s ON s.plan = a.id AND s.version = a.version AND s.step_order = r.step_order
        WHERE r.recipient_profile_id = p.id AND r.enabled AND c.channel_type = COALESCE(r.channel_type, s.channel_type)
      ))
  )
ORDER BY p.id LIMIT :n
