SELECT id, helper, name, active, doing, latitude, longitude, cell, x, y, z, position_at, skills, language, contact_type, contact, month, completed, expired, timeouts, served_at
FROM dispatch_helper WHERE helper > :after AND (:status IS NULL OR :status = CASE WHEN doing = 2 THEN 'BUSY' WHEN doing = 1 THEN 'OFFERED' WHEN active = 0 THEN 'INACTIVE' WHEN timeouts >= :pause_after THEN 'PAUSED' ELSE 'IDLE' END)
ORDER BY helper LIMIT :n
