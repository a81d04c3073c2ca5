SELECT s.channel_type, s.route_id, r.critical, CASE WHEN s.state = 'sent' AND s.error_code IS NOT NULL THEN 'undelivered' ELSE s.state END, s.reason, (s.ended_at - s.due_at) / 10, count(*)
FROM actions_step AS s JOIN actions_run AS r ON r.id = s.run
WHERE s.ended_at IS NOT NULL AND s.ended_at >= :since GROUP BY 1, 2, 3, 4, 5, 6
