INSERT INTO meta (name, value) VALUES ('uuid_mark', :mark) ON CONFLICT DO NOTHING
