SELECT secret FROM channels_key WHERE name = 'webhook'
