DELETE FROM actions_code WHERE sent_at <= :before
