DELETE FROM notify_endpoint WHERE url = :url
