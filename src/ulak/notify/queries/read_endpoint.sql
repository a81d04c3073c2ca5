SELECT url, secrets, disabled_at, reason FROM notify_endpoint WHERE url = :url
