INSERT INTO actions_former (profile_id, run)
VALUES :rows
ON CONFLICT DO NOTHING
