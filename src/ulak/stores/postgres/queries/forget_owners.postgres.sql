DELETE FROM owner WHERE dead_at <= :before
