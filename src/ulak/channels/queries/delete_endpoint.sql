DELETE FROM channels_endpoint WHERE url = :url
