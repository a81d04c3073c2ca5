SELECT url, secrets, disabled_at, reason FROM notify_endpoint ORDER BY url
