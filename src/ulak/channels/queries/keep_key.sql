INSERT INTO channels_key (name, secret) VALUES ('webhook', :secret) ON CONFLICT DO NOTHING
