UPDATE cron SET fired_at = :now WHERE name = :name AND fired_at = :before
