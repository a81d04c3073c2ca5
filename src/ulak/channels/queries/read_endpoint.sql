SELECT url, secrets, disabled_at, reason, requires_secret FROM channels_endpoint WHERE url = :url
