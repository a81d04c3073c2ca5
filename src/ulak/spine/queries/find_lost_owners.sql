SELECT id FROM owner WHERE lease_at < :now AND id <> :self ORDER BY id
