SELECT DISTINCT p.id, p.name FROM recipient_profiles AS p JOIN action_routes AS r ON r.recipient_profile_id = p.id AND r.enabled
WHERE p.status AND p.id > :after AND NOT EXISTS (
  SELECT 1 FROM recipient_channels AS c WHERE c.profile_id = p.id AND c.enabled AND c.verify_status = 'verified'
) ORDER BY p.id LIMIT :n
