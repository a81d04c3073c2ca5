SELECT id, helper, name, active, doing, latitude, longitude, cell, x, y, z, position_at, skills, language, contact_type, contact, month, completed, expired, timeouts, served_at
FROM (
  SELECT json_extract(value, '$[0]') AS low, json_extract(value, '$[1]') AS high FROM json_each(:ranges)
) AS span CROSS JOIN dispatch_helper INDEXED BY dispatch_helper_cell
WHERE cell BETWEEN span.low AND span.high
  AND helper > :after AND (:status IS NULL OR :status = CASE WHEN doing = 2 THEN 'BUSY' WHEN doing = 1 THEN 'OFFERED' WHEN active = 0 THEN 'INACTIVE' WHEN timeouts >= :pause_after THEN 'PAUSED' ELSE 'IDLE' END)
  AND latitude BETWEEN :south AND :north
  AND (CASE WHEN :west <= :east THEN longitude BETWEEN :west AND :east ELSE longitude >= :west OR longitude <= :east END)
ORDER BY helper LIMIT :n
