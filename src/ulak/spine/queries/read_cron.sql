SELECT fired_at FROM cron WHERE name = :name
