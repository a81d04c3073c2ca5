INSERT INTO cron (name, fired_at) VALUES (:name, :now) ON CONFLICT (name) DO NOTHING
