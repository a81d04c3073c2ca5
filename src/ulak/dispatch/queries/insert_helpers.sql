INSERT INTO dispatch_helper (id, helper, name, active, doing, latitude, longitude, cell, x, y, z, position_at, skills, language, contact_type, contact, month, completed, expired, timeouts, served_at)
VALUES :rows
