SELECT id, helper, name, active, doing, latitude, longitude, cell, x, y, z, position_at, skills, language, contact_type, contact, month, completed, expired, timeouts, served_at
FROM dispatch_helper WHERE helper = :helper
