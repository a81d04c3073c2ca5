SELECT sent_at FROM actions_code WHERE address = :address AND sent_at > :since ORDER BY sent_at
