UPDATE cron SET fired_at = :now
