SELECT id, helper, name, active, doing, latitude, longitude, cell, x, y, z, position_at, skills, language, contact_type, contact, month, completed, expired, timeouts, served_at
FROM unnest(:low::bigint[], :high::bigint[]) AS span (low, high), LATERAL (
  SELECT * FROM dispatch_helper WHERE cell BETWEEN span.low AND span.high OFFSET 0
) AS there
WHERE helper > :after AND (:status::text IS NULL OR :status::text = CASE WHEN doing = 2 THEN 'BUSY' WHEN doing = 1 THEN 'OFFERED' WHEN active = 0 THEN 'INACTIVE' WHEN timeouts >= :pause_after THEN 'PAUSED' ELSE 'IDLE' END)
  AND latitude BETWEEN :south AND :north
  AND (CASE WHEN :west::bigint <= :east::bigint THEN longitude BETWEEN :west::bigint AND :east::bigint
    ELSE longitude >= :west::bigint OR longitude <= :east::bigint END)
ORDER BY helper LIMIT :n
