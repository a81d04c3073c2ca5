-- Times that passed belong to an entry that says what it said then: with other words it begins now.
INSERT INTO cron (name, fired_at, expression, time_zone) VALUES (:name, :now, :expression, :time_zone)
ON CONFLICT (name) DO UPDATE SET
  fired_at = CASE
    WHEN cron.expression <> excluded.expression OR cron.time_zone <> excluded.time_zone THEN excluded.fired_at
    ELSE cron.fired_at
  END,
  expression = excluded.expression, time_zone = excluded.time_zone
